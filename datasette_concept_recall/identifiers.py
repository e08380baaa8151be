"""Identifiers of concepts in other people's catalogues, as addresses that can be followed."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

_DOI = r"10\.\d{4,9}(?:\.\d+)*/[^\s\x00-\x1f\x7f-\x9f]{1,500}"
_CHECKED_16 = r"\d{4}[- ]?\d{4}[- ]?\d{4}[- ]?\d{3}[\dX]"
_ISBN = r"(?:97[89][- ]?)?(?:\d[- ]?){9}[\dX]"
_separators = re.compile("[- ]").sub


class _Scheme(NamedTuple):
    """One kind of identifier.

    ``shape`` is what the whole value looks like, ``before`` what may stand before it, ``address``
    where it is resolved. ``compact`` tells that hyphens and spaces are for the eye only.
    """

    label: str
    shape: str
    address: str
    before: str = ""
    compact: bool = False


_SCHEMES = {
    "doi": _Scheme("DOI", _DOI, "https://doi.org/{}", r"https?://(?:dx\.)?doi\.org/|doi:\s*"),
    "orcid": _Scheme("ORCID", _CHECKED_16, "https://orcid.org/{}", r"https?://orcid\.org/"),
    "ror": _Scheme(
        "ROR", r"0[a-hj-km-np-tv-z0-9]{6}\d\d", "https://ror.org/{}", r"https?://ror\.org/"
    ),
    "raid": _Scheme("RAiD", _DOI, "https://raid.org/{}", r"https?://raid\.org/"),
    "arxiv": _Scheme(
        "arXiv",
        r"\d{4}\.\d{4,5}(?:v\d{1,3})?|[a-z-]{1,20}(?:\.[a-z]{2})?/\d{7}(?:v\d{1,3})?",
        "https://arxiv.org/abs/{}",
        r"https?://arxiv\.org/abs/|arxiv:\s*",
    ),
    "fundref": _Scheme(
        "Funder",
        r"10\.13039/\d{6,15}",
        "https://doi.org/{}",
        r"https?://(?:dx\.)?doi\.org/|doi:\s*",
    ),
    "isbn": _Scheme("ISBN", _ISBN, "https://openlibrary.org/isbn/{}", r"isbn:?\s*", True),
    "issn": _Scheme(
        "ISSN", r"\d{4}-?\d{3}[\dX]", "https://portal.issn.org/resource/ISSN/{}", r"issn:?\s*"
    ),
    "isni": _Scheme(
        "ISNI", _CHECKED_16, "https://isni.org/isni/{}", r"https?://isni\.org/isni/", True
    ),
    "pmid": _Scheme("PubMed", r"[1-9]\d{0,8}", "https://pubmed.ncbi.nlm.nih.gov/{}/", r"pmid:?\s*"),
    "pmcid": _Scheme(
        "PubMed Central", r"PMC[1-9]\d{0,8}", "https://pmc.ncbi.nlm.nih.gov/articles/{}/"
    ),
    "viaf": _Scheme(
        "VIAF", r"[1-9]\d{0,21}", "https://viaf.org/viaf/{}", r"https?://viaf\.org/viaf/"
    ),
    "snac": _Scheme(
        "SNAC",
        r"[1-9]\d{0,11}|ark:/99166/w6[a-z0-9]{4,10}",
        "https://snaccooperative.org/{}",
        r"https?://snaccooperative\.org/(?:view/)?",
    ),
    "lcnaf": _Scheme(
        "Library of Congress",
        r"n[a-z]{0,2}\d{6,12}",
        "https://id.loc.gov/authorities/names/{}",
        r"https?://id\.loc\.gov/authorities/names/",
    ),
}

_shapes = {
    kind: re.compile(
        f"(?:{scheme.before or '(?!)'})?({scheme.shape})", re.ASCII | re.IGNORECASE
    ).fullmatch
    for kind, scheme in _SCHEMES.items()
}


def identifier_label(kind: str) -> str:
    """What people call a type of identifier; an unknown type is called by itself."""
    scheme = _SCHEMES.get(kind.strip().lower())
    return scheme.label if scheme else kind


def identifier_url(kind: str, value: str) -> str | None:
    """Where the identifier is resolved, always ``https``; None unless it has the right shape.

    Looked at is the shape, no check digit. What a resolver's address or a name such as ``doi:``
    stands before is read as well, as some programs write it.
    """
    kind = kind.strip().lower()
    scheme = _SCHEMES.get(kind)
    match = _shapes[kind](value.strip()) if scheme else None
    if scheme is None or match is None:
        return None
    identifier = _separators("", match[1]) if scheme.compact else match[1]
    if kind == "snac" and identifier.isdigit():  # old records are numbered, newer ones have an ARK
        identifier = f"view/{identifier}"
    return scheme.address.format(quote(identifier, safe="/:;()-._~"))
