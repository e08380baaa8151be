"""What is offered for words that nearly name a concept: the rules, and the index against them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datasette_concept_recall import ConceptMatcher, near_misses
from datasette_concept_recall.models import NearMiss
from datasette_concept_recall.near_misses import NearMisses
from near_miss_oracle import edits, oracle_near_misses


def offered(names: Sequence[str], text: str, *, limit: int = 1000) -> list[NearMiss]:
    """What is offered for a text, which has to be what the definition says."""
    mentions = ConceptMatcher(names).mentions(text)
    found = NearMisses(names).find(text, mentions, limit=limit)
    if limit == 1000:
        expected = oracle_near_misses(names, text, mentions)
        assert [(miss.distance, miss.start, miss.end, miss.concept) for miss in found] == expected
        assert [text[miss.start : miss.end] for miss in found] == [miss.text for miss in found]
    return found


def pairs(names: Sequence[str], text: str) -> list[tuple[str, str]]:
    """The concepts that are offered, each after the words it is offered for."""
    return [(miss.text, miss.concept) for miss in offered(names, text)]


# --- The rules, case by case -------------------------------------------------------------------

OFFERED = {
    "a slip of the pen": [
        ("chunking", "chunknig"),
        ("chunking", "chunkng"),
        ("chunking", "chunkking"),
        ("chunking", "chunkinf"),
        ("retrieval augmented generation", "retreival augmented generation"),
        ("retrieval augmented generation", "retrieval augmented genaration"),
        ("retrieval augmented generation", "retrieval agumented generatoin"),
        ("Model Context Protocol", "model contxt protocol"),
        ("chunking strategy", "chunkimg stratagy"),
        ("abstract method", "abstract mathid"),
        ("one two three four five six seven eight", "one two three four five six seven eigth"),
    ],
    "another ending": [
        ("chunking", "chunkings"),
        ("type hint", "type hints"),
        ("abstract base class", "Abstract base classes"),
        ("stable API", "stable APIs"),
        ("thread safety", "thread safe"),
        ("parser", "parsed"),
        ("decorator", "decorated"),
        ("idempotent", "idempotence"),
        ("parameters", "parameter"),
    ],
    "a hyphen, an apostrophe or an underscore more or less": [
        ("thread safety", "thread-safety"),
        ("free-threading", "free threading"),
        ("Bayes' theorem", "Bayes theorem"),
    ],
    "accents, letters of other scripts, and case": [
        ("résumé parser", "resumé parser"),
        ("Straßenbahn", "STRASENBAHN"),
        ("ΟΔΥΣΣΕΑΣ", "οδυσεας"),
        ("Векторизация", "векторизации"),
        ("हिन्दी भाषा", "हिन्दि भाषा"),
        ("переводчик", "перево\u0301дчик"),
    ],
    "what surrounds the words of a name has to be there": [
        ("fetchall()", "fetchal()"),
        (".NET Framework", ".NET Framwork"),
        ("modern C++", "modren C++"),
    ],
    "line breaks and punctuation around": [
        ("context window", "the “context\n  windos”."),
        ("chunking", "[[chunkings]], _not_ more"),
        ("chunking", "RAG-chunkings/embeddings"),
        ("chunking", "使用chunkings技术"),
        ("Dr. Strangelove", "Dr. Strangelov"),
    ],
}

NOT_OFFERED = {
    "too far": [
        ("embedding", "embeded"),
        ("chunking", "chunkingses"),
        ("chunking", "chunkimh"),
        ("chunking", "chnuknig"),
        ("retrieval augmented generation", "retreival augmented genaration"),
        ("decorator", "dacorators"),
        ("chunking strategy", "chunkeng stratagy"),
    ],
    "short names": [("token", "tokens"), ("C++", "C"), ("RAG", "RAGs"), ("index", "indexs")],
    "another first letter": [
        ("dunder", "under"),
        ("CPython", "Python"),
        ("time zone", "time one"),
        ("machine learning", "machin elearning"),
    ],
    "digits and signs": [
        ("PEP 484", "PEP 483"),
        ("Python 3.11", "Python 3.1"),
        ("utf-8 mode", "utf-16 mode"),
        ("sqlite3", "sqlite"),
        ("modern C++", "modern C"),
        ("modern C++", "modern C#"),
        ("fetchall()", "fetchall"),
        ("fetchall()", "fetchal"),
        ("(fetchall", "fetchal ("),
        ("x² plane", "x³ plane"),
        ("release ½ plan", "release ¼ plan"),
    ],
    "another short word": [
        ("return type", "return the"),
        ("return type", "return time"),
        ("stack frame", "stack flake"),
        ("limited API", "limited ABI"),
        ("import hook", "import book"),
        ("stack frame", "stack trace"),
    ],
    "as many words": [
        ("database", "data base"),
        ("data base", "database"),
        ("context window", "context"),
        ("Zipf's law", "Zipfs law"),
    ],
    "one sentence": [
        ("chunking strategy", "About chunking. Strategys are"),
        ("chunking strategy", "chunking, strategys"),
        ("chunking strategy", "Chunking\n\nStrategys"),
        ("chunking strategy", "Chunking\r\n \t\r\nStrategys"),
        ("chunking strategy", "chunking - strategy"),
        ("Dr.No movies", "Dr. No movies"),
    ],
    "part of a longer word": [("chunking", "mychunkings"), ("chunking", "chunkings_x")],
    "scripts in which a character is a word": [
        ("自然语言处理", "自然语言处里"),
        ("데이터베이스", "데이터배이스"),
        ("コンピューター", "コンピュータ"),
    ],
    "mere letters": [("a b c d", "a b c e"), ("a b c d", "a-b c d")],
    "very long names": [
        ("a" * 101, "a" * 102),
        (
            "one two three four five six seven eight nine",
            "one two three four five six seven eight nin",
        ),
    ],
}


@pytest.mark.parametrize(
    ("rule", "name", "text"), [(r, *c) for r, cs in OFFERED.items() for c in cs]
)
def test_a_name_is_offered_for_words_that_nearly_name_it(rule: str, name: str, text: str) -> None:
    """Every case of the table is offered the name, once."""
    assert [miss.concept for miss in offered([name], text)] == [name], rule


@pytest.mark.parametrize(
    ("rule", "name", "text"), [(r, *c) for r, cs in NOT_OFFERED.items() for c in cs]
)
def test_other_words_are_no_near_miss(rule: str, name: str, text: str) -> None:
    """Every case of the table is offered nothing, although the words look alike."""
    assert offered([name], text) == [], rule


# --- What is offered for a text ----------------------------------------------------------------


def test_the_words_are_told_as_they_stand_in_the_text() -> None:
    """An offer says where in the original text the words are, whatever folding does before them."""
    text = "ﬃ ßß İ: Straßen\nBahnnen  fahren"
    assert offered(["straßen bahnen"], text) == [
        NearMiss("straßen bahnen", "Straßen\nBahnnen", 8, 23, 1)
    ]


def test_a_concept_that_is_named_is_not_offered() -> None:
    """Where a text has the name itself, the plural beside it needs no offer."""
    assert NearMisses(["chunking"]).find("Chunking", []) == []
    assert offered(["chunking"], "Chunking, and other chunkings") == []


def test_the_nearest_name_explains_the_words() -> None:
    """A farther name is not offered for words to which another is nearer, named or not."""
    names = ["type parameter", "type parameters x", "type paramete"]
    assert pairs(names, "type parameterz") == [("type parameterz", "type parameter")]
    assert offered(names, "type parameter, type parameterz") == []


def test_words_that_are_a_mention_or_part_of_one_are_no_near_miss() -> None:
    """What names another concept, or belongs to what does, is meant as it stands."""
    assert offered(["chunkings", "chunking"], "two chunkings") == []
    assert offered(["fixed chunkings", "chunking"], "the fixed chunkings") == []
    assert offered(["visual c++", "visual d"], "visual c") == []


def test_words_that_hold_a_mention_may_be_a_near_miss() -> None:
    """A concept within the words does not keep them from nearly naming a longer one."""
    assert pairs(["machine", "machine learning"], "machine lerning") == [
        ("machine lerning", "machine learning")
    ]


def test_the_form_of_a_short_name_is_no_slip() -> None:
    """A plural or a tense of a concept too short to be offered is not taken for another concept."""
    names, text = ["coaching", "indexer", "tugging"], "indexes caching tagging"
    assert sorted(miss.concept for miss in offered(names, text)) == names
    assert offered([*names, "index", "cache", "tag"], text) == []


def test_words_as_near_to_many_names_are_no_near_miss() -> None:
    """Up to five names are offered for the same words; more do not tell what is meant."""
    names = [f"sectioned tex{letter}" for letter in "abcdef"]
    assert offered(names, "sectioned tex") == []
    assert [miss.concept for miss in offered(names[1:], "sectioned tex")] == names[1:]


def test_case_variants_are_offered_as_one() -> None:
    """Of names that differ only in case, the first in code-point order is offered."""
    assert pairs(["chunking", "Chunking"], "chunkings") == [("chunkings", "Chunking")]


def test_each_name_is_offered_once() -> None:
    """A name is offered for the words that are nearest, the first of them."""
    text = "type parametrs, chunkings, typ parametrs, chunkng, type parametres"
    assert pairs(["type parameter", "chunking"], text) == [
        ("chunkings", "chunking"),
        ("type parametrs", "type parameter"),
    ]


def test_offers_are_nearest_first_then_in_the_order_of_the_text() -> None:
    """The order is total: distance, place, then name; a limit takes the first of them."""
    names = ["decorator", "chunking", "reference"]
    text = "A decoratr, referenced chunks: referencess, chunkings."
    expected = [
        ("decoratr", "decorator"),
        ("referenced", "reference"),
        ("chunkings", "chunking"),
    ]
    assert pairs(names, text) == expected
    for limit in range(4):
        found = offered(names[::-1], text, limit=limit)
        assert [(miss.text, miss.concept) for miss in found] == expected[:limit]


def test_the_order_of_the_names_does_not_matter() -> None:
    """The same vocabulary in another order offers the same."""
    names = [f"chunk{a}{b}" for a in "abcdef" for b in "abcdef"] + ["CHUNKAA"]
    text = "chunkag chunkzz chunkaaa chunkba chunkgb"
    assert offered(names, text) == offered(names[::-1], text) != []


def test_names_that_are_asked_for_are_not_offered() -> None:
    """What is in the answer already, under whatever spelling, is no offer, nor is a farther one."""
    index = NearMisses(["Chunking", "chunkingz"])
    assert [miss.concept for miss in index.find("chunkingx", [])] == ["Chunking", "chunkingz"]
    assert index.find("chunkingx", [], asked=["CHUNKING"]) == []


# --- Bounds ------------------------------------------------------------------------------------


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    """Words behind the first 100,000 characters are not offered, nor is one that is cut there."""
    index = NearMisses(["chunking", "strategy"])
    filling = "word " * 19_998  # 99,990 characters
    assert index.find(f"{filling}chunkin strategi", [])[0].start == 99_990
    assert index.find(f"{filling} strategysomething chunkings", []) == []
    assert index.find("x" * 200_000 + " chunkings", []) == []
    assert index.find(" " * 200_000 + " chunkings", []) == []


def test_a_text_takes_a_bounded_number_of_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a text that resembles very many names the beginning alone is compared."""
    digits = "abcdefghij"
    names = [f"aaaaaaaa x{a}{b}{c}" for a in digits for b in digits for c in digits]
    text = " ".join(f"aaaaaaaa xkk{a}{b}" for a in digits for b in digits)
    index = NearMisses([*names, "zebra crossing"])
    assert [miss.concept for miss in index.find(f"zebra crossings {text}", [])] != []
    assert index.find(f"{text} zebra crossings", []) == []
    monkeypatch.setattr(near_misses, "_COMPARISONS", 1_000_000)
    assert [miss.concept for miss in index.find(f"{text} zebra crossings", [])] != []


def test_names_and_texts_without_words_are_no_difficulty() -> None:
    """Empty, blank and wordless names and texts offer nothing."""
    assert offered(["", " ", "......", "²²²²²²²", "\u0301" * 7], "...... .. \u0301\u0301") == []
    assert offered(["chunking"], "") == []
    assert offered([], "chunkings") == []


def test_nothing_is_offered_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rapidfuzz is not installed there are no offers, and no error."""
    index = NearMisses(["chunking"])
    assert index.find("chunkings", []) != []
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    assert index.find("chunkings", []) == []
    assert NearMisses(["chunking"]).find("chunkings", []) == []


# --- Against the definition --------------------------------------------------------------------

LETTERS = "abdeéßи"
KNOWN = (
    "chunking strategies retrieval generation decision straße résumé векторов οδυσσεας हिन्दी "
    "cache caching index indexer parser parsed type types typed hint api apis a1b2 ab_c 48 3.11 "
    "字 字字 한국"
)
WORDS = st.sampled_from(KNOWN.split())
FEW = WORDS | st.text(LETTERS, min_size=1, max_size=9)
GAPS = st.sampled_from([*[" "] * 8, "-", "'", "  ", " - ", ". ", ".", ", ", "\n", "", "/"])
EDGES = st.sampled_from([*[""] * 8, "()", ".", "++", "(", ")"])


@st.composite
def generated_names(draw: st.DrawFn) -> str:
    """Some words, mostly few, joined and surrounded in different ways."""
    words = [draw(FEW)]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2, 6, 8]))):
        words += [draw(GAPS), draw(WORDS)]
    return draw(EDGES) + "".join(words) + draw(EDGES)


@st.composite
def mutated(draw: st.DrawFn, name: str) -> str:
    """A name with up to three slips, in another case or with another ending."""
    characters = list(name)
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3]))):
        at = draw(st.integers(1, max(1, len(characters))))
        what = draw(st.sampled_from(["insert", "delete", "replace", "swap"]))
        letter = draw(st.sampled_from([*LETTERS, *LETTERS, " ", "-", "4"]))
        if what == "insert":
            characters.insert(at, letter)
        elif what == "swap":
            characters[at : at + 2] = reversed(characters[at : at + 2])
        else:
            characters[at : at + 1] = [letter] if what == "replace" else []
    ending = draw(st.sampled_from(["", "", "", "", "s", "es", "ing"]))
    return draw(st.sampled_from([str, str, str.upper, str.title]))("".join(characters) + ending)


@st.composite
def vocabularies(draw: st.DrawFn) -> tuple[list[str], str]:
    """Names that resemble each other, and a text of words that resemble them."""
    names = draw(st.lists(generated_names(), min_size=1, max_size=4))
    names += [draw(mutated(name)) for name in names if draw(st.booleans())]
    parts = st.one_of(*[st.sampled_from(names).flatmap(mutated)] * 3, st.sampled_from(names), FEW)
    breaks = st.sampled_from([*[" "] * 4, ", ", ". ", "\n\n", "\n \n", "字", "_", "++ "])
    pieces = [
        piece
        for part in draw(st.lists(parts, min_size=1, max_size=6))
        for piece in (part, draw(breaks))
    ]
    return names, "".join(pieces)


@settings(max_examples=200, deadline=None)
@given(vocabularies())
@example((["cache", "coaching"], "caching"))
@example((["chunking", "chunkings"], "Chunking chunkingss"))
@example((["aaaaaa aaaaaa"], "aaaaaa-aaaaaaa aaaaaa aaaaab"))
def test_the_index_finds_what_the_definition_says(given_: tuple[list[str], str]) -> None:
    """Whatever the names and the text, the offers are those of comparing every run with each."""
    offered(*given_)


@settings(max_examples=100, deadline=None)
@given(st.text("abc", min_size=1, max_size=8), st.text("abc", min_size=1, max_size=8))
def test_edits_are_counted_as_defined(first: str, second: str) -> None:
    """The library counts the edits that the definition counts, swaps as one."""
    from rapidfuzz.distance import OSA

    assert OSA.distance(first, second) == edits(first, second)
