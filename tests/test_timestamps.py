"""Reading timestamp columns: which values name an instant, and which instant."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recall_oracle
from datasette_concept_recall.timestamps import parse_instant


def utc(*parts: int) -> datetime:
    """An aware UTC datetime from year, month, day and so on."""
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[arg-type, misc]


READABLE = [
    ("2026-09-29 23:00:00", utc(2026, 9, 29, 23)),
    ("2026-09-29T01:00:00Z", utc(2026, 9, 29, 1)),
    ("2026-09-29T01:00:00", utc(2026, 9, 29, 1)),
    ("2026-09-29 01:00:00Z", utc(2026, 9, 29, 1)),
    ("2026-09-29 01:02:03.5", utc(2026, 9, 29, 1, 2, 3, 500000)),
    ("2026-09-29T01:02:03.123456Z", utc(2026, 9, 29, 1, 2, 3, 123456)),
    ("2026-09-29T01:02:03.123456789Z", utc(2026, 9, 29, 1, 2, 3, 123456)),
    ("2026-09-29T01:02:03.000001+00:00", utc(2026, 9, 29, 1, 2, 3, 1)),
    ("2026-09-29T01:00:00+02:00", utc(2026, 9, 28, 23)),
    ("2026-09-29 01:00:00-05:30", utc(2026, 9, 29, 6, 30)),
    ("2026-12-31T23:59:59-14:00", utc(2027, 1, 1, 13, 59, 59)),
    ("2026-09-29 10:00", utc(2026, 9, 29, 10)),
    ("2026-09-29T10:00", utc(2026, 9, 29, 10)),
    ("2026-09-29T10:00Z", utc(2026, 9, 29, 10)),
    ("2026-09-29", utc(2026, 9, 29)),
    ("2024-02-29", utc(2024, 2, 29)),
    ("0001-01-01 00:00:00", utc(1, 1, 1)),
    ("9999-12-31 23:59:59", utc(9999, 12, 31, 23, 59, 59)),
]

UNREADABLE = [
    "",
    " ",
    "junk",
    "yesterday",
    "now",
    "20260929",
    "20260929T010000",
    "2026-W40-2",
    "2026-9-29",
    "2026-09",
    "2026",
    "29-09-2026",
    "29.09.2026",
    "2026/09/29",
    "09/29/2026 01:00",
    "2026-02-30",
    "2026-13-01 00:00:00",
    "0000-00-00 00:00:00",
    "0000-01-01",
    "2026-09-29T10",
    "2026-09-29x10:00:00",
    "2026-09-29 24:00:00",
    "2026-09-29 10:60:00",
    "2026-09-29 10:00:60",
    "2026-09-29 1:00:00",
    "2026-09-29 10:00:00+0100",
    "2026-09-29 10:00:00+01",
    "2026-09-29 10:00:00+01:00:30",
    "2026-09-29 10:00:00+99:99",
    "2026-09-29 10:00:00 junk",
    "2026-09-29 10:00:00ZZ",
    "x2026-09-29 10:00:00",
    "-2026-09-29",
    "12026-09-29",
    "٢٠٢٦-٠٩-٢٩",
    "２０２６-09-29 10:00:00",
    "2026-09-29\x0010:00:00",
    "2026-09-29 10:00:00\ud800",
    "0001-01-01 00:00:00+14:00",
    "9999-12-31 23:59:59-14:00",
    "9" * 5000,
]

NOT_TEXT = [
    None,
    0,
    1,
    20260929,
    1790000000,
    2**63 - 1,
    -1,
    1790000000.5,
    2461313.5,
    float("inf"),
    float("nan"),
    True,
    b"2026-09-29 10:00:00",
    b"\xff",
    (2026, 9, 29),
]


@pytest.mark.parametrize(("text", "expected"), READABLE)
def test_each_readable_form_names_its_instant(text: str, expected: datetime) -> None:
    """Every form that occurs in real files is read as the instant it names."""
    assert parse_instant(text) == expected


@pytest.mark.parametrize(("text", "expected"), READABLE)
def test_an_instant_is_aware_and_in_utc(text: str, expected: datetime) -> None:
    """Whatever zone was written, the answer is an aware datetime in UTC."""
    read = parse_instant(text)
    assert read is not None
    assert read.tzinfo == timezone.utc
    assert read.utcoffset() == timedelta(0)


@pytest.mark.parametrize("text", UNREADABLE)
def test_text_in_any_other_form_is_unreadable(text: str) -> None:
    """Text that is no timestamp, or almost one, is None and never an exception."""
    assert parse_instant(text) is None


@pytest.mark.parametrize("value", NOT_TEXT, ids=repr)
def test_a_value_that_is_not_text_is_unreadable(value: object) -> None:
    """NULL, numbers and blobs are unreadable: an integer is not taken for seconds or for a date."""
    assert parse_instant(value) is None


@pytest.mark.parametrize(("text", "expected"), READABLE)
def test_the_oracle_reads_what_the_issue_lists(text: str, expected: datetime) -> None:
    """The parser the other tests are judged by agrees with the table of readable forms."""
    assert recall_oracle.instant(text) == expected


@pytest.mark.parametrize("value", [*UNREADABLE, *NOT_TEXT], ids=lambda value: repr(value)[:40])
def test_the_oracle_refuses_everything_else(value: object) -> None:
    """The parser the other tests are judged by reads nothing of the table of unreadable values."""
    assert recall_oracle.instant(value) is None


clocks = st.one_of(
    st.just(""),
    st.builds(
        "{}{:02}:{:02}{}{}".format,
        st.sampled_from(" T"),
        st.integers(0, 25),
        st.integers(0, 61),
        st.one_of(
            st.just(""),
            st.builds(
                ":{:02}{}".format,
                st.integers(0, 61),
                st.one_of(st.just(""), st.from_regex(r"\.[0-9]{1,9}", fullmatch=True)),
            ),
        ),
        st.one_of(
            st.sampled_from(["", "Z", "+00:00"]),
            st.builds(
                "{}{:02}:{:02}".format,
                st.sampled_from("+-"),
                st.integers(0, 25),
                st.integers(0, 61),
            ),
        ),
    ),
)
days = st.one_of(
    st.dates().map(date.isoformat),
    st.builds(
        "{:04}-{:02}-{:02}".format, st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32)
    ),
)


@settings(deadline=None)
@given(st.builds(str.__add__, days, clocks))
def test_timestamps_and_near_misses_are_read_as_the_oracle_reads_them(text: str) -> None:
    """For any date and time, valid or just not, the package and the plain parser agree."""
    assert parse_instant(text) == recall_oracle.instant(text)


@settings(deadline=None)
@given(st.datetimes(timezones=st.just(timezone.utc)))
def test_what_was_written_in_utc_is_read_back(moment: datetime) -> None:
    """An instant written with fraction and zone is read back unchanged."""
    assert parse_instant(moment.isoformat(sep=" ", timespec="microseconds")) == moment


@settings(deadline=None)
@given(
    st.one_of(
        st.text(),
        st.text("0123456789-:. TZ+", max_size=30),
        st.integers(),
        st.floats(),
        st.binary(),
        st.none(),
    )
)
def test_no_value_raises(value: object) -> None:
    """Whatever a column holds, reading it gives an instant in UTC or None."""
    read = parse_instant(value)
    assert read is None or read.utcoffset() == timedelta(0)
