"""Identifiers as links: the right addresses, and none for what only looks like one."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_concept_recall.identifiers import identifier_label, identifier_url

# Every value of identifier_type that is written.
KINDS = [
    *("doi", "orcid", "ror", "raid", "arxiv", "fundref", "isbn", "issn"),
    *("isni", "pmid", "pmcid", "viaf", "snac", "lcnaf"),
]

LINKS = [
    ("doi", "10.1000/182", "https://doi.org/10.1000/182"),
    ("doi", "doi:10.1000/182", "https://doi.org/10.1000/182"),
    ("doi", "https://doi.org/10.1000/182", "https://doi.org/10.1000/182"),
    ("doi", "http://dx.doi.org/10.1000/182", "https://doi.org/10.1000/182"),
    (
        "doi",
        "10.1002/(SICI)1097-4571<1::AID-ASI1>3.0.CO;2-#",
        "https://doi.org/10.1002/(SICI)1097-4571%3C1::AID-ASI1%3E3.0.CO;2-%23",
    ),
    ("doi", '10.1000/a"b?c=%20', "https://doi.org/10.1000/a%22b%3Fc%3D%2520"),
    ("DOI", " 10.1000/182 ", "https://doi.org/10.1000/182"),
    ("orcid", "0000-0002-1825-0097", "https://orcid.org/0000-0002-1825-0097"),
    ("orcid", "https://orcid.org/0000-0001-2345-678X", "https://orcid.org/0000-0001-2345-678X"),
    ("ror", "05gq02987", "https://ror.org/05gq02987"),
    ("ror", "https://ror.org/05gq02987", "https://ror.org/05gq02987"),
    ("raid", "https://raid.org/10.26259/0e59e9a5", "https://raid.org/10.26259/0e59e9a5"),
    ("raid", "10.26259/0e59e9a5", "https://raid.org/10.26259/0e59e9a5"),
    ("arxiv", "arxiv:2412.03631", "https://arxiv.org/abs/2412.03631"),
    ("arxiv", "1706.03762v7", "https://arxiv.org/abs/1706.03762v7"),
    ("arxiv", "arxiv:math.gt/0309136", "https://arxiv.org/abs/math.gt/0309136"),
    ("fundref", "10.13039/100000001", "https://doi.org/10.13039/100000001"),
    ("isbn", "978-0-306-40615-7", "https://openlibrary.org/isbn/9780306406157"),
    ("isbn", "0-8044-2957-X", "https://openlibrary.org/isbn/080442957X"),
    ("issn", "2049-3630", "https://portal.issn.org/resource/ISSN/2049-3630"),
    ("isni", "0000 0001 2103 2683", "https://isni.org/isni/0000000121032683"),
    ("pmid", "17170002", "https://pubmed.ncbi.nlm.nih.gov/17170002/"),
    ("pmcid", "PMC2230338", "https://pmc.ncbi.nlm.nih.gov/articles/PMC2230338/"),
    ("viaf", "102333412", "https://viaf.org/viaf/102333412"),
    ("snac", "63606508", "https://snaccooperative.org/view/63606508"),
    ("snac", "ark:/99166/w6xd1fk9", "https://snaccooperative.org/ark:/99166/w6xd1fk9"),
    ("lcnaf", "n79021164", "https://id.loc.gov/authorities/names/n79021164"),
]

NO_LINKS = [
    ("", "10.1000/182"),
    ("urn", "urn:isbn:0306406152"),
    ("doi", ""),
    ("doi", "182"),
    ("doi", "10.1000/"),
    ("doi", "10.1000/a b"),
    ("doi", "10.1000/a\nb"),
    ("doi", "javascript:alert(1)//10.1000/182"),
    ("doi", "https://elsewhere.example/10.1000/182"),
    ("orcid", "0000-0002-1825-00977"),
    ("orcid", "０000-0002-1825-0097"),
    ("ror", "javascript:alert(1)"),
    ("ror", "05gq0298o"),
    ("arxiv", "2412.036"),
    ("arxiv", "../../evil/0309136"),
    ("fundref", "10.1000/182"),
    ("isbn", "12345"),
    ("issn", "2049-36300"),
    ("pmid", "0"),
    ("pmcid", "2230338"),
    ("viaf", "-1"),
    ("snac", "ark:/12345/w6xd1fk9"),
    ("lcnaf", "n/../../x"),
]


@pytest.mark.parametrize(("kind", "value", "url"), LINKS)
def test_an_identifier_leads_to_its_resolver(kind: str, value: str, url: str) -> None:
    """Every type, in the spellings that are met, becomes the address of its entry."""
    assert identifier_url(kind, value) == url


@pytest.mark.parametrize(("kind", "value"), NO_LINKS)
def test_what_has_another_shape_is_no_link(kind: str, value: str) -> None:
    """A value that no identifier of its type looks like is left as text."""
    assert identifier_url(kind, value) is None


def test_every_type_that_is_written_has_a_name_and_a_link() -> None:
    """No type of identifier is forgotten, and an unknown one is called by itself."""
    assert {kind for kind, _, _ in LINKS if kind.islower()} == set(KINDS)
    assert [identifier_label(kind) for kind in ("doi", "ORCID", "lcnaf", "urn")] == [
        "DOI",
        "ORCID",
        "Library of Congress",
        "urn",
    ]


HOSTS = {urlsplit(url).netloc for _, _, url in LINKS}
values = st.one_of(
    st.text(),
    st.sampled_from([value for _, value, _ in LINKS]).flatmap(
        lambda value: st.text(max_size=5).map(lambda more: value + more)
    ),
    st.text(min_size=1).map("10.1000/{}".format),
)


@settings(deadline=None)
@given(st.sampled_from(KINDS), values)
def test_a_link_leads_nowhere_else(kind: str, value: str) -> None:
    """Whatever is stored, a link is plain ASCII, of https, and to one of the resolvers."""
    url = identifier_url(kind, value)
    if url is not None:
        parts = urlsplit(url)
        assert parts.scheme == "https"
        assert parts.netloc in HOSTS
        assert (parts.query, parts.fragment) == ("", "")
        assert re.fullmatch(r"[A-Za-z0-9/:;()%._~-]+", url)


@settings(deadline=None)
@given(st.text(st.characters(min_codepoint=33, exclude_categories=["C", "Z"]), min_size=1))
def test_a_doi_arrives_as_it_is_stored(suffix: str) -> None:
    """Encoding loses nothing: what the resolver decodes is the identifier itself."""
    url = identifier_url("doi", f"10.1000/{suffix}")
    assert url is not None
    assert unquote(url.removeprefix("https://doi.org/")) == f"10.1000/{suffix}"
