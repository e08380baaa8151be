"""Which concepts a text names, by links, tags, properties and mentions."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import SHARED_DATA
from datasette_concept_recall.indexing.links import LONGEST_NAME, Named, mentioned, named_in
from datasette_concept_recall.matching import ConceptMatcher, can_match


def names(text: str, markdown: bool = True) -> list[str]:
    return [named.name for named in named_in(text, markdown=markdown)]


LINKS = [
    ("[[Name]]", ["Name"]),
    ("[[ Two \t words ]]", ["Two words"]),
    ("[[Two\r\nwords]]", ["Two words"]),
    ("[[Two\n\nparagraphs]]", []),
    ("[[Name|alias]]", ["Name"]),
    ("[[Name#heading]]", ["Name"]),
    ("[[Name#heading|alias]]", ["Name"]),
    ("[[Name#^block]]", ["Name"]),
    ("[[Name#one#two]]", ["Name"]),
    ("| [[Name\\|alias]] |", ["Name"]),
    ("![[Name]]", ["Name"]),
    ("![[pic.png]] ![[folder/pic.PNG|100]] ![[talk.pdf#page=2]]", []),
    ("![[Node.js]] [[v1.2]] [[.NET]] [[.png]]", ["Node.js", "v1.2", ".NET", ".png"]),
    ("[[folder/Name]]", ["Name"]),
    ("[[a/b/Name.md#x|y]]", ["Name"]),
    ("[[../Name]] [[folder/]]", ["Name"]),
    ("[[#only a heading]] [[|only an alias]] [[]] [[ ]]", []),
    ("[[C#]] [[C#|the language]] [[C##Syntax]] [[F# 4]]", ["C#", "C#", "C#", "F# 4"]),
    ("[[https://example.org/page]]", []),
    ("[[a]][[b]]", ["a", "b"]),
    ("[[a [b] c]] [[a [[b]]", ["b"]),
    ("[[Name] ] [ [Name]] [Name]", []),
    ("[[Éclair]] [[機械学習]]", ["Éclair", "機械学習"]),
    ("[[DR-0007]] [[dr-12]] [[0007]] [[3.14]] [[-2]]", []),
    ("[[DR-x]] [[2FA]] [[DR-7 revisited]]", ["DR-x", "2FA", "DR-7 revisited"]),
    ("[[...]] [[?]] [[--]]", []),
    ("[[a\x00b]] [[a\x1bb]] [[a\ud800]]", []),
    (f"[[{'x' * LONGEST_NAME}]] [[{'x' * (LONGEST_NAME + 1)}]]", ["x" * LONGEST_NAME]),
]


@pytest.mark.parametrize("markdown", [True, False])
@pytest.mark.parametrize(("text", "expected"), LINKS)
def test_a_link_means_its_name_without_what_stands_around_it(
    text: str, expected: list[str], markdown: bool
) -> None:
    """Links mean the same in Markdown and elsewhere, whatever is added to them."""
    assert names(text, markdown) == expected


HASHTAGS = [
    ("#tag", ["tag"]),
    ("a #tag, a #tag2. (#third)", ["tag", "tag2", "third"]),
    ("#nested/tag #nested/ #/x", ["nested/tag", "nested"]),
    ("#snake_case #kebab-case", ["snake_case", "kebab-case"]),
    ("#Éclair #cafe\u0301 #हिन्दी #機械学習、次", ["Éclair", "cafe\u0301", "हिन्दी", "機械学習"]),
    ("#1 #2026 #1st #-", ["1st"]),
    ("# Heading\n## Another\n#Tag", ["Tag"]),
    ("a#b a/#b &#39; \\#no ##no", []),
    ("http://x/#frag https://x.org/(#frag https://x.org/?a=b #tag", ["tag"]),
    ("[a](#frag) [a](b #c) [a](#f(g)) [a]: #frag\n[#no](x)", []),
    ('<a href="x" title="see #no">#no</a> 1 < 2 #tag', ["tag"]),
    ("#fff #FFFFFF #2fa #1a2b3c #00aabbcc", []),
    ("#facade #bad #deadbeef #1a2b #abcd1", ["facade", "bad", "deadbeef", "1a2b", "abcd1"]),
    ("#dr-12 #DR-0007", []),
    ("[[A|see #x]] [[B #y]] #z", ["A", "B", "z"]),
]


@pytest.mark.parametrize(("text", "expected"), HASHTAGS)
def test_a_hashtag_is_a_word_of_its_own_and_no_heading_fragment_or_colour(
    text: str, expected: list[str]
) -> None:
    """What begins with # names something in Markdown only, and not where it means another thing."""
    assert names(text) == expected
    links = {named.name for named in named_in(text, markdown=True) if named.origin == "link"}
    assert set(names(text, markdown=False)) == links


HIDDEN = [
    "`[[a]] #a`",
    "``[[a]] ` #a``",
    "```\n[[a]]\n#a\n```\n",
    "````\n```\n[[a]]\n````\n",
    "~~~ [[a]]\n#a\n~~~\n",
    "~~~\n```\n[[a]]\n~~~~\n",
    "   ```python\n[[a]]\n   ```\n",
    "```\r\n[[a]]\r\n```\r\n",
    "<!-- [[a]] #a -->",
    "<!--\n\n```\n[[a]]\n\n-->",
    "%% [[a]] #a %%",
    "%%\n\n[[a]] `\n\n%%",
    "`<!--` `-->`",
    "<!-- ` --> <!-- ` [[a]] -->",
]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_nothing_is_named_in_code_and_comments(hidden: str) -> None:
    """Neither code nor a comment names anything, and each ends where it ends."""
    assert names(f"#one [[two]]\n\n{hidden}\n\n[[three]] #four") == ["one", "two", "three", "four"]
    assert mentioned(f"a\n\n{hidden}\n\na", ConceptMatcher(["a"]), at_least=3) == {}


@pytest.mark.parametrize("opened", ["```\n", "~~~\n", "~~~~\n~~~\n", "```\n```x\n"])
def test_a_fence_that_is_never_closed_goes_on_to_the_end(opened: str) -> None:
    """Behind an open fence nothing is named any more."""
    assert names(f"[[a]]\n{opened}[[b]]\n\n#c") == ["a"]


@pytest.mark.parametrize(
    "opened", ["`", "``", "<!--", "%%", "` \n\n`", "`\n```\n```\n`", "a ```x`"]
)
def test_a_code_span_or_comment_that_is_never_closed_is_text(opened: str) -> None:
    """What only looks like the beginning of code or of a comment hides nothing."""
    assert names(f"[[a]] {opened} [[b]] #c") == ["a", "b", "c"]


PROPERTIES = [
    ("tags: [a, b]", ["a", "b"]),
    ("tags: [ 'a b' , \"c, d\", e f ] # g", ["a b", "c, d", "e f"]),
    ("tags: [\n  a,\n  b,\n]", ["a", "b"]),
    ("tags:\n  [\n    a,\n    b,\n  ]", ["a", "b"]),
    ("tags:\n- a\n- 'b c'  # why\n- \"d\"\n-\ntitle: x", ["a", "b c", "d"]),
    ("tags: # these\n\n  # or\n  - a\n\n  - b # no", ["a", "b"]),
    ("tags: a, b c,d", ["a", "b c", "d"]),
    ('keywords: "a, b"', ["a", "b"]),
    ("keywords: 'a'", ["a"]),
    ("tag: a # b, c", ["a"]),
    ("tags: '#a'\nkeywords:\n- '#b'", ["a", "b"]),
    ("tags: #a, #b", ["a", "b"]),
    ("aliases: [It''s]\nalias: 'It''s'", ["It''s", "It's"]),
    (r'alias: "say \"x\" \u00e9"', ['say "x" é']),
    (r'alias: "\q" ', []),
    ("TAGS: [a]\nKeywords: b\n\"alias\": c\n'tag': d", ["a", "b", "c", "d"]),
    ("tags:\r\n  - a\r\n  - b\r", ["a", "b"]),
    ("tags: nested/a", ["nested/a"]),
    ("title: a\nmytags: [b]\n  tags: [c]\ntags:x\ntags-of: d", []),
    ("tags: null\nalias: ~\nkeywords: true\ntag:", []),
    ("tags: [&x a, *x, !!str b, {c: d}]", []),
    ("tags:\n- a: b\n- &x c\n- *x\n- d", ["d"]),
    ("tags: |\n  a\nalias: >\n  b", []),
    ("tags: [a, b", ["a", "b"]),
    ("tags: [a, 'b]\nalias: c", ["a", "c"]),
    ("tags: [7, 2026, DR-0007, '']", []),
    ("related: '[[A|x]]'\ntags:\n- \"[[B]]\"", ["A", "B"]),
]


@pytest.mark.parametrize(("properties", "expected"), PROPERTIES)
def test_tags_keywords_and_aliases_are_read_in_the_forms_that_people_write(
    properties: str, expected: list[str]
) -> None:
    """Front matter names what its tags, keywords, aliases and links say, in Markdown only."""
    text = f"---\n{properties}\n---\n"
    assert names(text) == expected
    assert names(text + "[[z]]") == [*expected, "z"]
    assert all(named.origin == "link" for named in named_in(text, markdown=False))


@pytest.mark.parametrize(
    "text",
    [
        "\n---\ntags: a\n---\n",
        " ---\ntags: a\n---\n",
        "----\ntags: a\n---\n",
        "---\ntags: a\n",
        "---\ntags: a\n----\n",
        "---\ntags: a\n" + "x" * 65_536 + "\n---\n",
    ],
)
def test_front_matter_begins_the_text_is_closed_and_not_huge(text: str) -> None:
    """What only resembles front matter names nothing by its properties."""
    assert names(text + "\n#b") == ["b"]


def test_front_matter_may_follow_a_byte_order_mark_and_end_in_dots() -> None:
    """The two variants of front matter that editors write are read as well."""
    assert names("\ufeff--- \r\ntags: a\r\n...\r\n#b") == ["a", "b"]


def test_everything_named_says_where_it_stands_and_by_what() -> None:
    """Places are those of the names alone, without brackets, marks and quotes."""
    text = "---\ntags: ['x y']\n---\n#tag and [[ folder/Two\n words#h|z]]"
    assert named_in(text, markdown=True) == [
        Named("x y", text.index("x y"), text.index("']"), "property"),
        Named("tag", text.index("tag and"), text.index(" and"), "hashtag"),
        Named("Two words", text.index("Two"), text.index("#h"), "link"),
    ]


_letters = st.text("ab#[]!|/`~<>-%()\\:,'\" \né1", min_size=1, max_size=3)
_marks = ["[[a]]", "[[b|c]]", "![[d#e]]", "#tag", "```", "\n~~~\n", "<!--", "-->", "---\n", "\n\n"]
_odd = ["tags: ", "alias: [", "e\u0301", "ß", "機", "DR-1", "\r\n", "\t", "\x00", "\x85"]
_bits = _letters | st.sampled_from(_marks) | st.sampled_from(_odd)
_texts = st.lists(_bits, max_size=25).map("".join)


@settings(max_examples=200, deadline=None)
@given(_texts, st.booleans())
@example("---\ntags: [a, 'é']\n---\n#b", True)
def test_names_are_clean_and_stand_where_it_is_said(text: str, markdown: bool) -> None:
    """Of any text the names are clean, in order, and the text has them at their places."""
    found = named_in(text, markdown=markdown)
    assert found == sorted(found, key=lambda named: named.start)
    for named in found:
        raw = text[named.start : named.end]
        is_escaped = named.origin == "property" and ("''" in raw or "\\" in raw)
        assert is_escaped or named.name == " ".join(raw.split())
        assert raw == raw.strip()
        assert 0 < len(named.name) <= LONGEST_NAME
        assert can_match(named.name)
        assert named.name.isprintable()


@settings(max_examples=100, deadline=None)
@given(_texts, st.sampled_from(["Something else.\n\n", "# Title\n\n", "`code` [[x]]\n\n"]))
def test_a_paragraph_before_a_text_moves_what_it_names(text: str, before: str) -> None:
    """Text in front changes nothing but the places, but for front matter, which must be first."""
    by = len(before)
    found = named_in(" " + text, markdown=True)
    moved = [n for n in named_in(before + " " + text, markdown=True) if n.start >= by]
    assert moved == [n._replace(start=n.start + by, end=n.end + by) for n in found]


@settings(max_examples=100, deadline=None)
@given(_texts)
def test_front_matter_and_text_are_read_apart(text: str) -> None:
    """Behind front matter a text names what it names without."""
    matter = "---\ntags: [z]\n---\n"
    behind = [n for n in named_in(matter + text, markdown=True) if n.start >= len(matter)]
    if not text.startswith("---"):
        assert [n.name for n in behind] == names(text)


_plain = st.lists(st.sampled_from(["a", "b", "C++", " ", "\n", ".", "é", "[[a]]"])).map("".join)


@settings(max_examples=100, deadline=None)
@given(_plain, st.integers(1, 3))
def test_mentions_without_code_are_those_of_the_matcher(text: str, at_least: int) -> None:
    """In a text without code every mention counts, and a concept needs enough of them."""
    matcher = ConceptMatcher(["a", "a b", "C++", "é"])
    expected: dict[str, list[tuple[int, int]]] = {}
    for mention in matcher.mentions(text):
        expected.setdefault(mention.concept, []).append((mention.start, mention.end))
    enough = {name: spans for name, spans in expected.items() if len(spans) >= at_least}
    assert mentioned(text, matcher, at_least=at_least) == enough


def test_mentions_count_outside_code_and_comments_only() -> None:
    """Two mentions make a concept one of the text's, unless code or a comment holds one of them."""
    matcher = ConceptMatcher(["RAG", "bread", "Bread", "jam tart"])
    text = "RAG `RAG` bread <!-- jam tart --> jam tart, BREAD\n```\nRAG\n```\n%% RAG %%"
    bread = [(10, 15), (44, 49)]
    assert mentioned(text, matcher) == {"Bread": bread, "bread": bread}
    assert mentioned(text, matcher, at_least=1).keys() == {"RAG", "bread", "Bread", "jam tart"}
    assert mentioned("", matcher, at_least=1) == {}


def test_a_mention_that_code_interrupts_is_none() -> None:
    """Words with code between them are no name, nor is a word that a comment ends."""
    matcher = ConceptMatcher(["jam tart", "jam"])
    text = "jam `x` tart jam<!-- --> tart"
    assert mentioned(text, matcher, at_least=1) == {"jam": [(0, 3), (13, 16)]}


_HOSTILE = [
    *("[[", "#", "`", "<!--", "%%", "~~~\n", "[[a|", "](", "<a", "://", "[[a\n", "` `` ", "\n "),
    *("[[\n \n", "a`\n\n", "-->", "#-", "(#", "`\n", "'", '"\\', "- \n", "a: b, ", "','"),
]


@pytest.mark.parametrize("unit", _HOSTILE)
@pytest.mark.parametrize("before", ["", "---\ntags: [", "---\ntags:\n- "])
def test_a_long_text_of_openings_names_nothing(unit: str, before: str) -> None:
    """Hostile text of every kind is read in one go, and there is nothing in it.

    Work that grew with the square of the length would take minutes here.
    """
    text = before + unit * (60_000 // len(unit)) + "\n---\n" + unit * (100_000 // len(unit))
    assert set(names(text)) <= {"a: b", "a", "','", "a`"}
    assert mentioned(text, ConceptMatcher(["absent"])) == {}


def test_yaml_that_would_grow_is_text() -> None:
    """Anchors are not expanded, so a bomb of them stays as small as it is written."""
    pairs = zip("abcdefg", "bcdefgh", strict=True)
    lines = ["a: &a [lol, lol]", *(f"{new}: &{new} [*{old}, *{old}]" for old, new in pairs)]
    bomb = "\n".join([*lines, "tags: *h", "aliases: [*h, *g]", "keywords: !!python/name:os.system"])
    assert names(f"---\n{bomb}\n---\n#safe") == ["safe"]


def test_a_real_vault_names_its_notes() -> None:
    """In the notes of a real vault names are clean, and nearly all links are to notes of it."""
    vault = SHARED_DATA / "vault"
    if not vault.exists():
        pytest.skip(f"the real data is not beside this checkout (no {vault.name})")
    notes = {path.stem: path.read_text(encoding="utf-8") for path in sorted(vault.rglob("*.md"))}
    found = {title: named_in(text, markdown=True) for title, text in notes.items()}
    links = [n.name for each in found.values() for n in each if n.origin == "link"]
    tags = {n.name for each in found.values() for n in each if n.origin != "link"}
    assert sum(name in notes for name in links) > 0.9 * len(links) > 150
    assert "recipe" in tags
    assert "ffffff" not in tags
    matcher = ConceptMatcher(["Foam", "daily note"])
    assert sum("Foam" in mentioned(text, matcher) for text in notes.values()) > 20
