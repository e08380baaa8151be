"""Places in documents as people read them."""

from __future__ import annotations

from .models import Place

_SEVERAL = {"page": "pages", "slide": "slides", "row": "rows", "line": "lines"}


def describe(place: Place) -> str:
    """``page 3``, ``lines 10–24``, ``Budget, rows 2–9``; '' where nothing is known."""
    words = [place.part] if place.part else []
    if place.unit and place.first is not None:
        if place.last is None or place.last == place.first:
            words.append(f"{place.unit} {place.first}")
        else:
            words.append(f"{_SEVERAL[place.unit]} {place.first}–{place.last}")
    return ", ".join(words)
