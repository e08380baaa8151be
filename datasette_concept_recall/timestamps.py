"""Stored times as instants: the spellings a knowledge database holds, and nothing else."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from .models import NO_INSTANT

_SPELLING = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?"
    r"(?:Z|([+-])(\d\d):(\d\d))?)?",
    re.ASCII,
).fullmatch
_YEAR_ONE = datetime(1, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def parse_instant(value: object) -> datetime | None:
    """The instant a stored value means, aware and in UTC, or None when it is unreadable.

    Read are ``YYYY-MM-DD`` alone (midnight) and with ``HH:MM`` or ``HH:MM:SS`` behind a space or
    ``T``, seconds with a fraction (cut to microseconds), then ``Z``, ``±HH:MM`` or nothing (UTC).
    Numbers are never read as times: no writer of knowledge databases means epochs by them.
    """
    match = _SPELLING(value) if isinstance(value, str) else None
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, off_hours, off_minutes = match.groups()
    try:
        instant = datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "0")[:6].ljust(6, "0")),
            tzinfo=timezone.utc,
        )
        if sign:
            if int(off_hours) > 23 or int(off_minutes) > 59:
                return None
            offset = timedelta(hours=int(off_hours), minutes=int(off_minutes))
            instant = instant - offset if sign == "+" else instant + offset
    except (ValueError, OverflowError):  # the 31st of February, the hour before year 1
        return None
    return instant


def age_of(value: object) -> int:
    """The sort key of a stored time: smaller for later instants, `NO_INSTANT` when unreadable."""
    instant = parse_instant(value)
    return NO_INSTANT if instant is None else (_YEAR_ONE - instant) // _MICROSECOND
