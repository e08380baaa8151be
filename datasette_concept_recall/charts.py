"""Pictures to stand in a page, as SVG: bars over time, and the neighbourhood of a concept.

The markup is built as a tree and then written, so that every name in it is escaped. Pictures are
drawn for a width of 400 pixels, where their letters are about as large as those around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from .labels import one_line, short_label, shown_name, two_lines, width_of
from .periods import Timeline

WIDTH = 400
MOST_NEIGHBOURS = 12

_EM = 12
_CENTRE_EMS = 8.8
_TEXT, _QUIET, _LINE, _BLUE, _WHITE = "#222222", "#595959", "#c4cdd5", "#276890", "#ffffff"
_ISOLATE, _ISOLATE_END = "\u2068", "\u2069"

_LABEL_STEPS = {
    "day": (1, 2, 7, 14, 28),
    "week": (1, 2, 4, 13, 26),
    "month": (1, 3, 6, 12, 24),
    "quarter": (1, 2, 4, 8, 20),
}
"""Every how many periods there may be a label; of years the last applies."""


class Neighbour(NamedTuple):
    """A concept that items carry together with another: so many (1 or more), and its page."""

    name: str
    shared: int
    href: str


def timeline_svg(use: Timeline, ids: str, title: str, description: str) -> str:
    """The bars of a timeline as ``<svg>``: one image, to be followed by a table of the same.

    ``ids`` begins the ids in it, which have to be unique in the page.
    """
    svg = _picture(146, "img", ids, title, description)
    most = max((period.uses for period in use.periods), default=1)
    step = _round_step(most)
    highest = step * -(-most // step)
    left, right = max(44.0, width_of(f"{highest:,}") * _EM + 8), WIDTH - 8.0
    top, bottom = 12.0, 118.0
    for value in range(0, highest + 1, step):
        y = bottom - (bottom - top) * value / highest
        _add(svg, "path", d=f"M{left:.2f} {y:.2f}H{right:.2f}", stroke=_LINE)
        _text(svg, left - 6, y + 4, f"{value:,}", "end")
    slot = (right - left) / max(len(use.periods), 8)
    for place, period in enumerate(use.periods):
        if period.uses:
            height = max((bottom - top) * period.uses / highest, 1.5)
            x, y = left + slot * (place + 0.1), bottom - height
            bar = _box(svg, x, y, slot * 0.8, height, fill=_BLUE)
            SubElement(bar, "title").text = f"{period.label}: {period.uses:,}"
    _label_periods(svg, use, left, slot, bottom)
    return tostring(svg, encoding="unicode")


def _round_step(highest: int) -> int:
    """The first of 1, 2, 5, 10, 20, 50, … of which four reach the highest value."""
    step = 1
    while highest > 4 * step:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return step


def _label_periods(svg: Element, use: Timeline, left: float, slot: float, bottom: float) -> None:
    """What the periods are called, from the first on and as many as have room."""
    if not use.periods:
        return
    wide = max(width_of(period.label) for period in use.periods) * _EM
    steps = _LABEL_STEPS.get(use.unit, (1, 2, 5, 10, 20))
    step = next((step for step in steps if step * slot >= wide + 8), steps[-1])
    for place, period in list(enumerate(use.periods))[::step]:
        tick = left + slot * (place + 0.5)
        if tick + wide / 2 <= WIDTH:
            _add(svg, "path", d=f"M{tick:.2f} {bottom:.2f}v5", stroke=_QUIET)
            _text(svg, tick, bottom + 20, period.label, "middle")


def neighbourhood_svg(
    name: str, neighbours: Sequence[Neighbour], ids: str, title: str, description: str
) -> str:
    """A concept and its neighbours around it as ``<svg>``, lines the wider the more they share.

    Of the neighbours, which come with the most shared first, `MOST_NEIGHBOURS` are drawn, clockwise
    from the top. Each is a link, so the picture is a group: what is in an image cannot be reached.
    """
    around = neighbours[:MOST_NEIGHBOURS]
    on_right = -(-len(around) // 2)
    height = 60.0 if on_right < 2 else max(130.0, 40.0 * on_right)
    svg = _picture(height, "group", ids, title, description)
    x, y = WIDTH / 2, height / 2
    most = max((each.shared for each in around), default=1)
    drawn = []
    for place, each in enumerate(around):
        angle = _angle(place, on_right, len(around))
        end = x + 72 * cos(angle), y + (y - 20) * sin(angle)
        line = f"M{x:.2f} {y:.2f}L{end[0]:.2f} {end[1]:.2f}"
        wide = f"{1 + 7 * each.shared / most:.2f}"
        _add(svg, "path", d=line, stroke="#8fb3c9", **{"stroke-width": wide})
        drawn.append((each, *end))
    for each, end_x, end_y in drawn:
        _add_neighbour(svg, each, end_x, end_y)
    _add_centre(svg, shown_name(name), x, y)
    return tostring(svg, encoding="unicode")


def _angle(place: int, on_right: int, total: int) -> float:
    """Where a neighbour is seen from the centre, clockwise: on the right half, then on the left."""
    if place < on_right:
        return pi * ((place + 0.5) / on_right - 0.5)
    return pi * ((place - on_right + 0.5) / (total - on_right) + 0.5)


def _add_neighbour(svg: Element, each: Neighbour, x: float, y: float) -> None:
    """A link: a dot, and the name outwards from there as far as there is room."""
    outwards = 1 if x > WIDTH / 2 else -1
    room = (WIDTH - x if outwards > 0 else x) - 10
    shown = shown_name(each.name)
    label = short_label(shown, room / _EM)
    link = _add(svg, "a", href=each.href)
    items = "item" if each.shared == 1 else "items"
    SubElement(link, "title").text = f"{shown}: {each.shared:,} {items} in common"
    width = min(width_of(label) * _EM, room) + 16
    # Nothing to be seen, but to be hit by a finger.
    left = x - 6 if outwards > 0 else x + 6 - width
    _box(link, left, y - 12, width, 24, **{"fill-opacity": "0"})
    _add(link, "circle", cx=f"{x:.2f}", cy=f"{y:.2f}", r="5", fill=_BLUE)
    _text(link, x + 10 * outwards, y + 4, label, "start" if outwards > 0 else "end", _BLUE)


def _add_centre(svg: Element, name: str, x: float, y: float) -> None:
    """The name in a box that no neighbour reaches into, on two lines where one is too short."""
    lines = two_lines(name, _CENTRE_EMS)
    width = 14 + max(map(width_of, lines)) * _EM
    height = 12.0 + 16 * len(lines)
    group = _add(svg, "g")
    SubElement(group, "title").text = name
    _box(group, x - width / 2, y - height / 2, width, height, fill=_WHITE, stroke=_BLUE, rx="3")
    for place, line in enumerate(lines):
        _text(group, x, y + 4 + 16 * place - 8 * (len(lines) - 1), line, "middle", _TEXT)


def _picture(height: float, role: str, ids: str, title: str, description: str) -> Element:
    attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {WIDTH} {height:.0f}",
        "role": role,
        "aria-labelledby": f"{ids}-title",
        "aria-describedby": f"{ids}-description",
        "class": "recall-picture",
        "font-size": str(_EM),
    }
    svg = Element("svg", attributes)
    SubElement(svg, "title", id=f"{ids}-title").text = one_line(title)
    SubElement(svg, "desc", id=f"{ids}-description").text = one_line(description)
    return svg


def _add(parent: Element, tag: str, **attributes: str) -> Element:
    return SubElement(parent, tag, attributes)


def _box(parent: Element, x: float, y: float, width: float, height: float, **more: str) -> Element:
    place = {"x": x, "y": y, "width": width, "height": height}
    written = {key: f"{value:.2f}" for key, value in place.items()}
    return _add(parent, "rect", **written, **more)


def _text(parent: Element, x: float, y: float, text: str, anchor: str, fill: str = _QUIET) -> None:
    """A line of text, isolated so that ``…`` comes last in one written from right to left."""
    attributes = {"x": f"{x:.2f}", "y": f"{y:.2f}", "text-anchor": anchor, "fill": fill}
    _add(parent, "text", **attributes).text = f"{_ISOLATE}{text}{_ISOLATE_END}"
