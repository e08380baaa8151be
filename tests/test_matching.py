"""Which concept names stand in a text, and where: the rules, and the fast matcher against them."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, astuple
from functools import cache

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from datasette_concept_recall import ConceptMatcher, ConceptMention, word_match
from datasette_concept_recall.matching import word_count
from matching_cases import FLAT_CASES, unmark
from matching_oracle import (
    folded,
    is_word,
    oracle_count,
    oracle_mentions,
    oracle_names,
    oracle_spans,
)

Mention = tuple[int, int, str]


def found(names: Iterable[str], text: str) -> list[Mention]:
    """What the matcher finds, in the order it gives, as the oracle would say it.

    The same among many names, where they are looked for in another way, and when added later.
    """
    names = list(names)
    matchers = [
        ConceptMatcher(names),
        ConceptMatcher([*names, *UNRELATED]),
        ConceptMatcher(UNRELATED).extended(names),
        ConceptMatcher(names[:2]).extended(names[2:]),
    ]
    few, *others = [
        [(m.start, m.end, m.concept) for m in matcher.mentions(text)] for matcher in matchers
    ]
    assert all(other == few for other in others)
    return few


UNRELATED = [f"zqx {n} zqx" for n in range(20)]


# --- The rules, case by case -------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "name", "marked_text"), FLAT_CASES)
def test_a_name_is_found_exactly_where_the_rules_say(
    rule: str, name: str, marked_text: str
) -> None:
    """Every case of the tables gets the marked spans from the matcher and from both functions."""
    text, spans = unmark(marked_text)
    assert found([name], text) == [(start, end, name) for start, end in spans], rule
    assert word_count(name, text) == len(spans)
    assert word_match(name, text) is bool(spans)


@pytest.mark.parametrize(("rule", "name", "marked_text"), FLAT_CASES)
def test_the_oracle_obeys_the_same_tables(rule: str, name: str, marked_text: str) -> None:
    """The definition that the matcher is compared with agrees with the rules as written."""
    text, spans = unmark(marked_text)
    assert oracle_spans(name, text) == spans, rule


def test_a_whole_vocabulary_finds_what_its_names_find_alone() -> None:
    """Names do not influence each other: all of the tables at once give what each gives alone."""
    names = sorted({name for _, name, _ in FLAT_CASES})
    matcher = ConceptMatcher(names)
    for _, _, marked_text in FLAT_CASES:
        text, _ = unmark(marked_text)
        assert [(m.start, m.end, m.concept) for m in matcher.mentions(text)] == oracle_mentions(
            names, text
        )


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        (
            ["chunking", "chunking strategy"],
            "a chunking strategy",
            [(2, 10, "chunking"), (2, 19, "chunking strategy")],
        ),
        (["strategy", "chunking strategy"], "chunking strategy", None),
        (["a b", "b c", "a b c", "b"], "a b c", None),
        (["C", "C++", "C++17", "+17"], "C++17 and C++ and C", None),
        ([".NET", "ASP.NET", "NET", "ASP"], "ASP.NET", None),
        (["RAG", "rag", "Rag "], "rag", [(0, 3, "RAG"), (0, 3, "Rag "), (0, 3, "rag")]),
        (["世界", "新世界", "世界観", "界"], "新世界観", None),
        (["a", "a a", "a a a"], "a a a a", None),
        (["café", "cafe\u0301", "CAFÉ"], "cafe\u0301", None),
        (["Straße", "STRASSE", "strasse"], "STRASSE", None),
        (["context window", "context  window", "context\nwindow"], "Context Window", None),
        (["x.y", "y.z", "x.y.z"], "x.y.z", None),
        (["...", "", "²", "RAG"], "... ² RAG", [(6, 9, "RAG")]),
        ([], "RAG", []),
        ([""], "", []),
    ],
)
def test_names_are_independent(names: list[str], text: str, expected: list[Mention] | None) -> None:
    """Names that overlap, contain or equal each other are all found, sorted by place and name."""
    mentions = found(names, text)
    assert mentions == oracle_mentions(names, text)
    assert expected is None or mentions == expected


def test_names_are_returned_as_stored_in_code_point_order() -> None:
    """Stored spellings come back each once, capitals first and characters beyond U+FFFF last."""
    stored = ["é", "b", "B", " a\n", "Z", "\uff71", "𠮷", "b", "missing"]
    text = "𠮷 ｱ é b B a z b b"
    assert ConceptMatcher(stored).names(text) == [" a\n", "B", "Z", "b", "é", "\uff71", "𠮷"]


def test_counts_are_the_mentions_of_each_name_that_has_any() -> None:
    """A name that is not mentioned is absent from the counts, not zero."""
    matcher = ConceptMatcher(["RAG", "rag", "C++", "chunking"])
    assert matcher.counts("RAG, C++ and rag; C++17") == {"RAG": 2, "rag": 2, "C++": 1}
    assert matcher.counts("") == {}


# --- Offsets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "mentioned"),
    [
        ("RAG", "ßßßßß RAG ßß", "RAG"),
        ("rag", "İİİİİ RAG", "RAG"),
        ("rag", "ﬃﬃﬃ—RAG", "RAG"),
        ("rag", "ΐΐΐ RAG", "RAG"),
        ("rag", "e\u0301e\u0301e\u0301 RAG e\u0301", "RAG"),
        ("rag", "a\u0301\u0323\u0308 RAG", "RAG"),
        ("rag", "\u1109\u1165\u11bc\u1107\u1165 RAG", "RAG"),
        ("rag", "か\u3099か\u3099RAGか\u3099", "RAG"),
        ("rag", "𠮷👩‍💻🇪🇺 RAG", "RAG"),
        ("rag", " \n\n\t  \u3000 RAG \n", "RAG"),
        ("rag", "\ufeff\x00RAG", "RAG"),
        ("straße", "eine STRASSE", "STRASSE"),
        ("STRASSE", "eine straße", "straße"),
        ("istanbul", "ISTANBUL", "ISTANBUL"),
        ("İİ", "x i\u0307I\u0307 x", "i\u0307I\u0307"),
        ("café", "un cafe\u0301!", "cafe\u0301"),
        ("ệ", "x e\u0323\u0302 x", "e\u0323\u0302"),
        ("ệ", "x e\u0302\u0323 x", "e\u0302\u0323"),
        ("서버", "\u1109\u1165\u1107\u1165는", "\u1109\u1165\u1107\u1165"),
        ("성", "\u1109\u1165\u11bc는", "\u1109\u1165\u11bc"),
        ("성", "서\u11bc는", "서\u11bc"),
        ("がく", "か\u3099くせい", "か\u3099く"),
        ("ä", "(a\u0308\u0e31)", "a\u0308"),
        ("a b", "x\n\na \r\n\t b\n", "a \r\n\t b"),
        ("Å b", "\u212b\u3000\u2028 B", "\u212b\u3000\u2028 B"),
    ],
)
def test_offsets_point_into_the_original_text(name: str, text: str, mentioned: str) -> None:
    """Folding that makes a text longer or shorter does not move its mentions."""
    (mention,) = ConceptMatcher([name]).mentions(text)
    assert isinstance(mention, ConceptMention)
    assert text[mention.start : mention.end] == mentioned
    assert (mention.concept, mention.start) == (name, text.index(mentioned))


def test_offsets_hold_far_into_a_text_whose_characters_change_length() -> None:
    """Small shifts do not add up: the last mention of a long mixed text is where it is."""
    filler = "ß e\u0301 İ \u1109\u1165 ﬃ \n\n か\u3099 🦜 "
    text = "".join(f"{filler}RAG " for _ in range(500))
    mentions = ConceptMatcher(["rag"]).mentions(text)
    assert [text[m.start : m.end] for m in mentions] == ["RAG"] * 500
    assert mentions[-1].end == len(text) - 1


def test_a_mention_cannot_be_changed() -> None:
    """Mentions are values that may be shared between threads."""
    (mention,) = ConceptMatcher(["RAG"]).mentions("RAG")
    assert astuple(mention) == ("RAG", 0, 3)
    with pytest.raises(FrozenInstanceError):
        mention.start = 1  # type: ignore[misc]


# --- The matcher against the oracle ------------------------------------------------------------

# Every token is whole: no slice of a text ends between the halves of one user-visible character
# unless a test asks for that.
TOKENS = [
    *"aabbABsSxX",
    *("é", "e\u0301", "É", "e", "\u0301", "ß", "ẞ", "ss", "İ", "i\u0307", "ı", "i", "I"),
    *("ﬁ", "f", "σ", "ς", "Σ", "\u212a", "k", "ΐ", "\u03aa\u0301", "д", "ह", "ा"),
    *("技", "术", "世", "界", "𠮷", "々", "か", "か\u3099", "が", "カ", "ー", "ｶ"),
    *("ไ", "ท", "ย", "\u0e31", "ລ", "ខ", "မ", "๑"),
    *("서", "버", "\u1109\u1165", "\u1107\u1165", "\u11bc", "\u1109", "ㅋ", "는"),
    *("🦜", "👩‍💻", "❤️", "…", "、", "—"),
    *(".", ".", "+", "+", "#", "-", "'", "_", "[", "]", "(", ")", "?", "*", "\\", "^", "$", "|"),
    *("0", "1", "7", "٣", "²", "½", "Ⅷ"),
    *(" ", " ", " ", " ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", "\x85"),
    *("\u200b", "\u200d", "\x00"),
]
PAIRS = ["a a", "a.a", "C++", "a b", ".a", "서버", "技术", "x", "ab", "a+", "+a+"]

RESPELLINGS: list[Callable[[str], str]] = [
    str,
    str,
    str.upper,
    str.lower,
    str.swapcase,
    str.casefold,
    str.strip,
    lambda name: unicodedata.normalize("NFC", name),
    lambda name: unicodedata.normalize("NFD", name),
    lambda name: " \n ".join(name.split()),
    lambda name: f"\t{name} ",
]


@st.composite
def vocabularies_and_texts(draw: st.DrawFn) -> tuple[list[str], str]:
    """A text in short repeating pieces, and names that are respelled slices of it."""
    few = draw(st.lists(st.sampled_from(TOKENS) | st.sampled_from(PAIRS), min_size=1, max_size=6))
    parts = draw(st.lists(st.sampled_from([*few, " "]) | st.sampled_from(TOKENS), max_size=24))
    text = "".join(parts)
    names = [draw(st.sampled_from(PAIRS))]
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        name = text[start : start + draw(st.integers(1, 5))]
        names.append(draw(st.sampled_from(RESPELLINGS))(name))
    return names, text


fuzz = settings(
    deadline=None,
    derandomize=True,
    max_examples=600,
    suppress_health_check=[HealthCheck.too_slow],
)


@fuzz
@given(vocabularies_and_texts())
@example((["a.a"], "xa.a.a"))
@example((["a a"], "a a a a"))
@example((["ss", "s"], "ßs"))
@example((["İ", "i"], "i\u0307"))
@example((["か", "が"], "か\u3099"))
@example((["서", "성"], "서\u11bc"))
def test_the_matcher_agrees_with_the_oracle(drawn: tuple[list[str], str]) -> None:
    """Mentions, names and counts of any vocabulary in any text are those of the definition."""
    names, text = drawn
    matcher = ConceptMatcher(names)
    expected = oracle_mentions(names, text)
    assert [(m.start, m.end, m.concept) for m in matcher.mentions(text)] == expected
    assert matcher.names(text) == oracle_names(names, text)
    assert matcher.counts(text) == Counter(name for _, _, name in expected)


@fuzz
@given(vocabularies_and_texts())
def test_one_word_agrees_with_the_oracle(drawn: tuple[list[str], str]) -> None:
    """`word_match` and `word_count` of a single word are those of the definition."""
    names, text = drawn
    for name in names:
        assert word_count(name, text) == oracle_count(name, text)
        assert word_match(name, text) is bool(oracle_count(name, text))


# What is not promised, because Unicode leaves it open or because it is a matter of taste: marks
# that belong to several scripts or to none, a mark that folds to a letter, characters that are not
# yet assigned, and names that begin or end with a symbol of a script without spaces.
NOT_PROMISED = "\u0345\u302a\u302b\u302c\u302d\u302e\u302f"
SYMBOLS = ("THAI ", "LAO ", "KHMER ", "MYANMAR ", "KATAKANA", "HALFWIDTH KATA", "CJK", "KANGXI")


def is_promised(char: str) -> bool:
    """Whether the rules leave no doubt how a character behaves."""
    if char in NOT_PROMISED or unicodedata.category(char) == "Cn":
        return False
    return is_word(char) or not unicodedata.name(char, "").startswith((*SYMBOLS, "HANGZHOU"))


any_text = st.text(st.characters(exclude_categories=["Cs"]).filter(is_promised), max_size=40)


@settings(fuzz, max_examples=200)
@given(st.lists(any_text.map(lambda text: text[:8]), max_size=6), any_text)
def test_any_characters_at_all_agree_with_the_oracle(names: list[str], text: str) -> None:
    """No text and no name, made of whatever characters, makes the matcher fail or differ."""
    names = [*names, text[:3], text[2:6]]
    assert found(names, text) == oracle_mentions(names, text)


@settings(fuzz, max_examples=200)
@given(vocabularies_and_texts(), st.randoms(use_true_random=False))
@example((["rag", "RAG", " rag "], "RAG"), random.Random(1))
@example((["\u0345", "ι"], "ι"), random.Random(1))
def test_the_order_of_the_names_does_not_matter(
    drawn: tuple[list[str], str], shuffler: random.Random
) -> None:
    """A reversed, or a shuffled and repeated vocabulary finds the same in the same order."""
    names, text = drawn
    shuffled = [*names, *names]
    shuffler.shuffle(shuffled)
    assert found(shuffled, text) == found(names, text) == found(names[::-1], text)


@settings(fuzz, max_examples=200)
@given(vocabularies_and_texts())
def test_the_results_of_one_matcher_agree_with_each_other(drawn: tuple[list[str], str]) -> None:
    """Names and counts are what the mentions say, and mentions of one name never overlap."""
    names, text = drawn
    matcher = ConceptMatcher(name for name in names)
    mentions = matcher.mentions(text)
    assert mentions == sorted(mentions, key=lambda m: (m.start, m.end, m.concept))
    assert matcher.counts(text) == Counter(m.concept for m in mentions)
    assert matcher.names(text) == sorted({m.concept for m in mentions})
    for name in set(names):
        spans = [(m.start, m.end) for m in mentions if m.concept == name]
        edges = [edge for span in spans for edge in span]
        assert edges == sorted(edges)
        assert len(spans) == word_count(name, text)


@settings(fuzz, max_examples=200)
@given(vocabularies_and_texts())
def test_composition_of_the_text_does_not_matter(drawn: tuple[list[str], str]) -> None:
    """A text finds the same names whether its characters are composed or not."""
    names, text = drawn
    matcher = ConceptMatcher(names)
    counts = matcher.counts(text)
    assert matcher.counts(unicodedata.normalize("NFC", text)) == counts
    assert matcher.counts(unicodedata.normalize("NFD", text)) == counts


def test_the_generated_cases_really_hold_mentions() -> None:
    """The comparison is worth something: many cases hold mentions, and many hold glued ones."""
    outcomes = Counter[str]()

    @settings(fuzz, max_examples=200, database=None)
    @given(vocabularies_and_texts())
    def look(drawn: tuple[list[str], str]) -> None:
        names, text = drawn
        for name in names:
            plain = name.strip() != "" and name.strip() in text
            held = oracle_count(name, text) > 0
            outcomes["found" if held else "glued" if plain else "absent"] += 1

    look()
    assert outcomes["found"] > 100
    assert outcomes["glued"] > 100


# --- All of Unicode ----------------------------------------------------------------------------


HUGE = ("CJK", "HANGUL SYL", "TANGUT", "NUSHU", "KHITAN", "CUNEIFORM", "ANATOLIAN", "EGYPTIAN")
LARGE = ("SIGNWRITING", "YI ", "VAI ", "BAMUM", "ETHIOPIC", "CANADIAN", "LINEAR", "BRAILLE")
LIKE_OTHERS = ("MATHEMATICAL", "MENDE", "HENTAIGANA", "BYZANTINE", "MUSICAL", "ARABIC LIGATURE")


@cache
def every_character() -> list[str]:
    """All assigned characters, thinned out where hundreds of them are alike."""
    chars = []
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) in ("Cn", "Cs", "Co"):
            continue
        alike = unicodedata.name(char, "").startswith((*HUGE, *LARGE, *LIKE_OTHERS))
        if not alike or code % 61 == 0:
            chars.append(char)
    return chars


@pytest.mark.parametrize("edge", ["x", "é", "+", "技", "か", "ภ", "서"])
def test_every_character_glues_or_does_not_glue_as_the_oracle_says(edge: str) -> None:
    """On either side of a Latin, accented, Han, kana, Thai, Hangul or other edge, all agree."""
    name = f"{edge}a{edge}"
    chars = [char for char in every_character() if is_promised(char)]
    chars = [char for char in chars if is_word(char) or ord(char) % 7 == 0]
    text = "\n".join(f"{char}{name}\n{name}{char}" for char in chars)
    assert found([name], text) == oracle_mentions([name], text)


def test_every_letter_is_found_in_its_other_spellings_and_in_no_other_letter() -> None:
    """Case and composition make no difference for any letter of any script, and nothing else does.

    Each line below is one spelling of one letter; it holds the letters that fold to the same.
    """
    spellings: list[Callable[[str], str]] = [
        *(str, str.upper, str.lower, str.title, str.casefold),
        lambda char: unicodedata.normalize("NFC", char),
        lambda char: unicodedata.normalize("NFD", char),
        lambda char: unicodedata.normalize("NFD", char.casefold()),
    ]
    letters = [char for char in every_character() if char.isalpha()]
    lines = {spell(letter) for letter in letters for spell in spellings}
    same: dict[str, list[str]] = {}
    for letter in letters:
        same.setdefault(folded(letter), []).append(letter)
    matcher = ConceptMatcher(letters)
    assert len(lines) > len(letters) > 10_000
    wrong = {line for line in lines if matcher.names(line) != sorted(same.get(folded(line), []))}
    assert wrong == set()


# --- Names given, not looked for ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("RAG", ("RAG", "rag")),
        ("Rag", ("RAG", "rag")),
        ("  rAG\n", ("RAG", "rag")),
        ("STRASSE", ("Straße",)),
        ("e\u0301clair", ("Éclair",)),
        ("context\t\tWINDOW", (" context  window", "context window")),
        ("c++", ("C++",)),
        ("C", ()),
        ("RAGs", ()),
        ("", ()),
        ("eclair", ()),
    ],
)
def test_a_name_resolves_to_its_stored_spellings(asked: str, stored: tuple[str, ...]) -> None:
    """Case, composition and white space do not matter; all stored spellings come back, sorted."""
    names = ["rag", "RAG", "C++", "Éclair", "Straße", "context window", " context  window"]
    assert ConceptMatcher(names).resolve(asked) == stored


# --- Large and hostile input -------------------------------------------------------------------


def test_a_matcher_is_shared_by_threads() -> None:
    """Eight threads with one matcher and different texts get what one thread gets."""
    matcher = ConceptMatcher(["RAG", "C++", "a a", "世界", "서버", "context window"])
    texts = [
        f"{'x ' * number}RAG C++ a a a a 新世界観 서버는 context\nwindow" for number in range(200)
    ]
    expected = [matcher.mentions(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(matcher.mentions, texts)) == expected


def test_twenty_thousand_names_in_a_long_text() -> None:
    """A large vocabulary finds exactly its names in a text of hundreds of kilobytes."""
    names = [f"concept {number} of many" for number in range(20_000)]
    wanted = [19_999, 0, 123, 7_000]
    filler = "A concept 99999 of many, concept 1 of manyx and the like. " * 5_000
    text = filler + " ".join(f"Concept\n{number} of  MANY." for number in wanted)
    matcher = ConceptMatcher(names)
    assert len(matcher) == 20_000
    assert matcher.counts(text) == {f"concept {number} of many": 1 for number in wanted}


def test_names_that_share_every_prefix_and_suffix() -> None:
    """Names of one to sixty equal words find their share of a text that is made of that word."""
    names = [" ".join(["a"] * length) for length in range(1, 61)]
    counts = ConceptMatcher(names).counts("a " * 6_000)
    assert counts == {name: 6_000 // (len(name) // 2 + 1) for name in names}


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("a a", "a " * 100_000, 50_000),
        ("a.a", "xa" + ".a" * 100_000, 50_000),
        ("aa", "a" * 200_000, 0),
        ("a" * 2_000, "a" * 100_000, 0),
        ("a" * 2_000 + "b", "a" * 100_000, 0),
        ("a b", "a" + " " * 300_000 + "c", 0),
        ("a b", "a" + " " * 300_000 + "b", 1),
        ("a b", " " * 300_000, 0),
        ("a" + " " * 50_000 + "b", "a b", 1),
        ("a b c", "a b " * 75_000, 0),
        ("a", "\u0301" * 100_000 + " a", 1),
        ("a", "a" + "\u0301" * 100_000, 0),
        ("a", "a" + "\u0301\u0323" * 50_000 + " a", 1),
        ("서", "\u1109\u1165" * 100_000, 1),
        ("ss", "ß" * 200_000, 0),
        ("世", "世" * 200_000, 200_000),
        ("+a+", "+a" * 100_000 + "+", 0),
        ("(a+)+$", "a" * 100_000 + "!", 0),
        ("a", "a\x00" * 100_000, 100_000),
        ("x" * 100_000, "x" * 100_000, 1),
        ("a", "\ud800a\udfff", 1),
    ],
    ids=lambda value: f"{value[:12]!a}" if isinstance(value, str) else None,
)
def test_hostile_texts_finish(name: str, text: str, count: int) -> None:
    """Long runs and near misses cost no more than a pass over the text, and count correctly."""
    assert word_count(name, text) == count
    assert word_match(name, text) is (count > 0)
    assert ConceptMatcher([name, "unrelated"]).counts(text) == ({name: count} if count else {})
