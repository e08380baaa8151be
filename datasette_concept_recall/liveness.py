"""Which items still hold: not superseded, not rejected, cancelled or expired."""

from __future__ import annotations

from .mapping import Source

INACTIVE = ("superseded", "rejected", "cancelled", "expired")
"""The states, in any letter case, of what holds no longer."""


_BLANKS = "char(9, 10, 11, 12, 13, 32, 160)"


def active_sql(source: Source) -> str:
    """The condition over the items of a source under which one still holds.

    An item is superseded by its own status or by a relation to another one that is there.
    """
    conditions = []
    if source.status != "null":
        states = ", ".join(f"'{state}'" for state in INACTIVE)
        conditions.append(
            f"lower(trim(coalesce({source.status}, ''), {_BLANKS})) not in ({states})"
        )
    if source.relations is not None:
        conditions.append(
            f"not exists (select 1 from {source.relations} r join {source.item_table} n"
            f" on n.id = r.from_id where r.to_id = {source.id} and r.from_id <> r.to_id"
            " and r.relationship = 'supersedes')"
        )
    if source.active:
        conditions.append(source.active)
    return " and ".join(conditions) or "1"
