"""The pictures, read back as XML: what they show, that it fits, and that no name breaks them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datasette_concept_recall.charts import (
    MOST_NEIGHBOURS,
    WIDTH,
    Neighbour,
    neighbourhood_svg,
    timeline_svg,
)
from datasette_concept_recall.labels import one_line, short_label, shown_name, width_of
from datasette_concept_recall.periods import timeline

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "</title></svg><img src=x onerror=alert(1)>",
    "\"'&amp;]]><!--",
    "a\x00b\x08c\x1bd\x7fe\ufffef\ud800g",
    "two\nlines\tand\x0bmore",
    "",
    " \n ",
    "שלום עולם, שם ארוך מאוד שלא נכנס",
    "\u202eevil\u2069\u2069",
    "👩‍👩‍👧‍👦👍🏽🦉" * 20,
    "e\u0301" * 100,
    "新世界観" * 50,
    "M" * 10_240,
]


def drawn_timeline(uses: dict[date, int], words: str = "Uses") -> Element:
    """The picture of some uses, as XML."""
    return fromstring(timeline_svg(timeline(uses), "t", words, words))


def drawn_neighbours(neighbours: Sequence[Neighbour], name: str = "RAG") -> Element:
    """The picture of some neighbours, as XML."""
    return fromstring(neighbourhood_svg(name, neighbours, "n", f"Around {name}", "Described"))


def neighbours_of(names: Sequence[str]) -> list[Neighbour]:
    """Neighbours of these names, each sharing less than the one before."""
    return [Neighbour(name, 2 * len(names) - n, f"/c/{n}") for n, name in enumerate(names)]


def text_of(element: Element) -> str:
    """What is written in the picture, without the marks that isolate it."""
    text = "".join(element.itertext())
    return text[1:-1] if element.tag == f"{SVG}text" else text


def number(element: Element, name: str) -> float:
    return float(element.attrib[name])


def extents(svg: Element) -> list[tuple[str, float, float, float, float]]:
    """Of each thing drawn its tag and left, right, top and bottom edge."""
    found = []
    for each in svg.iter():
        tag = each.tag.removeprefix(SVG)
        if tag == "rect":
            x, y = number(each, "x"), number(each, "y")
            found.append((tag, x, x + number(each, "width"), y, y + number(each, "height")))
        elif tag == "circle":
            x, y, r = (number(each, name) for name in ("cx", "cy", "r"))
            found.append((tag, x - r, x + r, y - r, y + r))
        elif tag == "text":
            x, y, wide = number(each, "x"), number(each, "y"), width_of(text_of(each)) * 12
            before = {"start": 0.0, "middle": wide / 2, "end": wide}[each.attrib["text-anchor"]]
            found.append((tag, x - before, x - before + wide, y - 12, y + 4))
        elif tag == "path":
            start, way, *rest = re.findall(r"[MHLv][^MHLv]+", each.attrib["d"])
            assert rest == []
            x, y = map(float, start[1:].split())
            to = [float(part) for part in way[1:].split()]
            end = {"H": (to[0], y), "L": tuple(to), "v": (x, y + to[0])}[way[0]]
            found.append((tag, min(x, end[0]), max(x, end[0]), min(y, end[-1]), max(y, end[-1])))
    return found


def assert_fits(svg: Element) -> None:
    """Everything drawn lies within the picture, and every number is one."""
    left, top, width, height = map(float, svg.attrib["viewBox"].split())
    assert (left, top, width) == (0, 0, WIDTH)
    for tag, x1, x2, y1, y2 in extents(svg):
        assert 0 <= x1 <= x2 <= width + 0.01, tag
        assert 0 <= y1 <= y2 <= height + 0.01, tag
    for each in svg.iter():
        for key, value in each.attrib.items():
            assert key == "href" or not re.search(r"nan|inf|e[+-]", value), (key, value)


def assert_named(svg: Element, role: str) -> None:
    """The picture says what it is, by ids that are its own."""
    ids = [each.attrib["id"] for each in svg.iter() if "id" in each.attrib]
    assert svg.attrib["role"] == role
    assert [svg[0].tag, svg[1].tag] == [f"{SVG}title", f"{SVG}desc"]
    assert ids == [svg.attrib["aria-labelledby"], svg.attrib["aria-describedby"]]
    assert len(set(ids)) == 2


# --- bars over time ------------------------------------------------------------------------------


def test_every_period_with_a_use_is_a_bar_that_says_so() -> None:
    """Bars stand for their counts, and periods without use have none."""
    svg = drawn_timeline({date(2024, 5, 1): 2, date(2024, 5, 4): 4})
    bars = list(svg.iter(f"{SVG}rect"))
    assert [text_of(bar) for bar in bars] == ["2024-05-01: 2", "2024-05-04: 4"]
    first, second = (number(bar, "height") for bar in bars)
    assert second == pytest.approx(2 * first, abs=0.02)
    assert [text_of(text) for text in svg.iter(f"{SVG}text")] == [
        *("0", "1", "2", "3", "4"),
        *("2024-05-01", "2024-05-03"),
    ]


def test_the_image_of_use_over_time_is_named_and_described() -> None:
    """A reader who does not see the bars is told what they are."""
    svg = fromstring(timeline_svg(timeline({date(2024, 1, 1): 1}), "x", "A title", "A text"))
    assert_named(svg, "img")
    assert [text_of(svg[0]), text_of(svg[1])] == ["A title", "A text"]


@pytest.mark.parametrize(
    ("highest", "values"),
    [
        (1, [0, 1]),
        (4, [0, 1, 2, 3, 4]),
        (5, [0, 2, 4, 6]),
        (9, [0, 5, 10]),
        (21, [0, 10, 20, 30]),
        (1_234, [0, 500, 1_000, 1_500]),
    ],
)
def test_lines_are_at_round_numbers(highest: int, values: list[int]) -> None:
    """At most four lines above zero, at 1, 2, 5, 10 and so on, the last above every bar."""
    svg = drawn_timeline({date(2024, 1, 1): highest})
    texts = [text_of(text) for text in svg.iter(f"{SVG}text")]
    assert texts == [*(f"{value:,}" for value in values), "2024-01-01"]


days = st.dates()
nearby = st.integers(0, 3_000).map(lambda n: date(2020, 1, 1) + timedelta(n))


@settings(deadline=None)
@given(
    st.one_of(
        st.dictionaries(days, st.integers(1, 10**9), max_size=70),
        st.dictionaries(nearby, st.integers(1, 50), max_size=70),
    )
)
@example({})
@example({date.min: 1, date.max: 10**12})
def test_bars_and_their_labels_fit(uses: dict[date, int]) -> None:
    """Whatever the counts and the times, all lies inside the picture and no labels overlap."""
    svg = drawn_timeline(uses)
    assert_fits(svg)
    below = sorted(x[1:3] for x in extents(svg) if x[0] == "text" and x[4] > 130)
    assert all(one[1] < other[0] for one, other in pairwise(below))
    assert len(below) >= bool(uses)


# --- the neighbourhood ---------------------------------------------------------------------------


def test_neighbours_are_links_that_say_how_much_is_shared() -> None:
    """Each leads to its page; the most shared comes first and has the widest line."""
    svg = drawn_neighbours([Neighbour("a & b", 1_000, "/d/x?y=1&z"), Neighbour("c", 1, "/d/c")])
    assert_named(svg, "group")
    links = list(svg.iter(f"{SVG}a"))
    assert [link.attrib["href"] for link in links] == ["/d/x?y=1&z", "/d/c"]
    titles = [text_of(link[0]) for link in links]
    assert titles == ["a & b: 1,000 items in common", "c: 1 item in common"]
    wide, narrow = (number(line, "stroke-width") for line in svg.iter(f"{SVG}path"))
    assert wide == 8.0
    assert 1 <= narrow < 1.1


def test_only_the_nearest_neighbours_are_drawn() -> None:
    """Of many neighbours, twelve are shown, and none without any."""
    svg = drawn_neighbours(neighbours_of([f"n{n}" for n in range(40)]))
    assert len(list(svg.iter(f"{SVG}a"))) == MOST_NEIGHBOURS == 12
    assert list(drawn_neighbours([]).iter(f"{SVG}a")) == []


names = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40))


@settings(deadline=None)
@given(st.lists(names, max_size=14), names)
@example(HOSTILE[:12], HOSTILE[-1])
@example(HOSTILE[1:], HOSTILE[0])
def test_neighbours_of_any_name_fit(around: list[str], name: str) -> None:
    """Dots, lines and names lie inside the picture, and links do not cover one another."""
    svg = drawn_neighbours(neighbours_of(around), name)
    assert_fits(svg)
    places = [
        [edges for edges in extents(link) if edges[0] != "text"] for link in svg.iter(f"{SVG}a")
    ]
    boxes = [
        tuple(
            pick(edge[n] for edge in link) for n, pick in ((1, min), (2, max), (3, min), (4, max))
        )
        for link in places
    ]
    for index, one in enumerate(boxes):
        for other in boxes[:index]:
            assert (
                one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
            )


@pytest.mark.parametrize(
    "name", ["abstract base class", "w" * 40, "MMM MMM MMM MMM MMM MMM", "RAG"]
)
def test_the_name_in_the_centre_covers_no_neighbour(name: str) -> None:
    """However many there are, and however long it is; its letters stay in their box."""
    for number in range(MOST_NEIGHBOURS + 1):
        svg = drawn_neighbours(neighbours_of(["n"] * number), name)
        (group,) = svg.iter(f"{SVG}g")
        box, *texts = extents(group)
        assert all(box[1] <= text[1] and text[2] <= box[2] for text in texts)
        assert all(box[3] <= text[3] and text[4] <= box[4] for text in texts)
        for _, left, right, top, bottom in [each for each in extents(svg) if each[0] == "circle"]:
            assert right <= box[1] or box[2] <= left or bottom <= box[3] or box[4] <= top


def test_the_name_in_the_centre_is_whole_where_two_lines_hold_it() -> None:
    """It is broken between words; of a longer name the rest is cut."""
    for name, lines in (
        ("RAG", ["RAG"]),
        ("abstract base class", ["abstract base", "class"]),
        ("global interpreter lock", ["global", "interpreter lock"]),
        ("retrieval augmented generation", ["retrieval", "augmented ge…"]),
    ):
        (group,) = drawn_neighbours([], name).iter(f"{SVG}g")
        assert [text_of(text) for text in group.iter(f"{SVG}text")] == lines


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_nothing_but_text(name: str) -> None:
    """A name is shown whole where the pointer rests, and never becomes markup."""
    svg = drawn_neighbours([Neighbour(name, 3, "/x")], name)
    allowed = {"svg", "title", "desc", "path", "a", "g", "rect", "circle", "text"}
    assert {each.tag.removeprefix(SVG) for each in svg.iter()} <= allowed
    (link,) = svg.iter(f"{SVG}a")
    assert text_of(link[0]) == f"{shown_name(name)}: 3 items in common"
    assert shown_name(name) in [text_of(title) for title in svg.iter(f"{SVG}title")]
    assert_fits(svg)


@settings(deadline=None)
@given(st.lists(names, max_size=5), st.dictionaries(nearby, st.integers(1, 9), max_size=5))
def test_the_same_is_always_drawn_the_same(around: list[str], uses: dict[date, int]) -> None:
    """The markup follows from the data alone, in whatever order days come."""
    backwards = dict(reversed(uses.items()))
    assert timeline_svg(timeline(uses), "t", "u", "d") == timeline_svg(
        timeline(backwards), "t", "u", "d"
    )
    neighbours = neighbours_of(around)
    first = neighbourhood_svg("RAG", neighbours, "n", "t", "d")
    assert neighbourhood_svg("RAG", list(neighbours), "n", "t", "d") == first


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it, of ``#rrggbb``."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return sum(v * weight for v, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def test_letters_are_dark_enough_to_be_read() -> None:
    """All text has a contrast of 4.5 or more with the white it stands on."""
    pictures = [drawn_timeline({date(2024, 1, 1): 1}), drawn_neighbours(neighbours_of(["a", "b"]))]
    texts = [text for svg in pictures for text in svg.iter(f"{SVG}text")]
    assert texts
    assert all(1.05 / (luminance(text.attrib["fill"]) + 0.05) >= 4.5 for text in texts)


# --- labels --------------------------------------------------------------------------------------


@settings(deadline=None)
@given(names, st.floats(1, 20))
def test_a_label_is_the_beginning_of_its_name(name: str, ems: float) -> None:
    """A name that fits is left alone; of another the beginning is shown and is narrow enough."""
    label = short_label(name, ems)
    if width_of(name) <= ems:
        assert label == name
    else:
        assert label.endswith("…")
        assert name.startswith(label[:-1])
        assert label != "…" or not name[:1].strip()
        assert width_of(label) <= max(ems, width_of(name[:1] + "…")) + 0.01


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("global interpreter lock", "global inte…"),
        ("e\u0301" * 30, "e\u0301" * 9 + "…"),
        ("👩‍👩‍👧‍👦" * 3, "👩‍👩‍👧‍👦…"),
        ("👍🏽" * 9, "👍🏽" * 2 + "…"),
        ("a\u0301", "a\u0301"),
    ],
)
def test_a_character_is_not_cut_in_two(name: str, label: str) -> None:
    """What belongs to one character, a mark or a joined emoji, is shown or left out together."""
    assert short_label(name, 6.6) == label


def test_a_name_is_shown_on_one_line_without_control_characters() -> None:
    """What XML and HTML forbid is replaced, white space is collapsed, a blank name can be seen."""
    assert one_line("a\x00b\n \tc\x85d\x9f") == "a\ufffdb c d\ufffd"
    assert [shown_name(""), shown_name(" \n"), shown_name(" x ")] == ["(blank)", "(blank)", "x"]
