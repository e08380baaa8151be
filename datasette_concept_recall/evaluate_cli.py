"""``datasette concept-recall evaluate``: which embedder and rendering find most in your data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import RecallError
from .index_printing import Meter
from .indexing.embedding import Embedder
from .printing import terminal_line
from .registered import embedder_named
from .rendering import RENDERINGS, Rendering

if TYPE_CHECKING:
    from .evaluating import Evaluation, Measured
    from .retrieval_metrics import Interval

_DEFAULT_EMBEDDER = "wordllama"
_ALL = "all"
_NOTHING = "–"

_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("data", metavar="INDEX_OR_RECORDS", type=_file)
@click.argument("questions", nargs=-1, type=_file)
@click.option(
    "embedders",
    "--embedder",
    multiple=True,
    help="An embedder to try, several may be given; none for the words alone"
    " [default: wordllama, if it is installed]",
)
@click.option(
    "renderings",
    "--rendering",
    multiple=True,
    type=click.Choice([_ALL, *RENDERINGS]),
    help="What of a record is embedded, several may be given [default: all]",
)
@click.option("as_json", "--json", is_flag=True, help="Print one JSON object")
@click.option("as_markdown", "--markdown", is_flag=True, help="Print Markdown tables")
@click.option(
    "as_of",
    "--as-of",
    type=click.DateTime(["%Y-%m-%d"]),
    help="What of a file of records had expired by this day is no candidate [default: now]",
)
@click.option("sample", "--sample", type=click.IntRange(1), help="Draft so many questions instead")
@click.option("seed", "--seed", type=int, default=0, help="Of the choice that --sample makes")
def evaluate(
    data: Path,
    questions: tuple[Path, ...],
    embedders: tuple[str, ...],
    renderings: tuple[str, ...],
    as_json: bool,
    as_markdown: bool,
    as_of: datetime | None,
    sample: int | None,
    seed: int,
) -> None:
    """Measure how well each layer finds what answers QUESTIONS

    INDEX_OR_RECORDS is an index, another database, or a file of one JSON object a line: statement,
    subject, kind and so on, and an id. Lines of QUESTIONS are {"query": …, "target": …}, without a
    target where nothing answers, and may name a tier. Nothing that is given is changed, and no text
    reaches a remote embedder that is not named here.
    """
    from .evaluating import Watch, evaluate
    from .evaluation_data import drafted, read_questions, read_records

    if bool(sample) == bool(questions):
        raise click.UsageError("Give files of questions, or --sample to draft one.")
    if as_json and as_markdown:
        raise click.UsageError("--json and --markdown say opposite things; give one of them.")
    now = as_of.replace(tzinfo=timezone.utc) if as_of else datetime.now(timezone.utc)
    records = read_records(data, now)
    if sample:
        for line in drafted(records, sample, seed):
            click.echo(json.dumps(line, ensure_ascii=False))
        return
    asked = read_questions(questions, records)
    meter = Meter()
    try:
        watch = Watch(told=meter.tell, progressed=meter.show)
        chosen = _embedders(embedders)
        found = evaluate(records, asked, chosen, _renderings(renderings), watch)
    finally:
        meter.end()
    if as_json:
        click.echo(json.dumps(_as_json(found), indent=2, ensure_ascii=False))
    else:
        _print(found, as_markdown)


def _embedders(names: Sequence[str]) -> list[Embedder]:
    """Those of these names; `_DEFAULT_EMBEDDER` without any, if it is installed."""
    if not names:
        try:
            return [embedder_named(None, _DEFAULT_EMBEDDER)]
        except RecallError as error:
            click.echo(f"Only words are searched. {error}", err=True)
            return []
    chosen = (name for name in dict.fromkeys(names) if name not in ("", "none"))
    return [embedder_named(None, name) for name in chosen]


def _renderings(names: Sequence[str]) -> list[Rendering]:
    return [each for each in RENDERINGS if not names or _ALL in names or each in names]


# --- JSON ----------------------------------------------------------------------------------------


def _as_json(found: Evaluation) -> dict[str, Any]:
    return {
        "ok": True,
        "records": found.records,
        "answerable": found.answerable,
        "unanswerable": found.unanswerable,
        "blank": found.blank,
        "results": [_result(each) for each in found.measured],
        "warnings": list(found.warnings),
    }


def _result(each: Measured) -> dict[str, Any]:
    gain, cost = each.gain, each.cost
    return {
        "layer": each.configuration.layer,
        "embedder": each.configuration.embedder,
        "rendering": each.configuration.rendering,
        **_scores(each.scores),
        "tiers": {tier: _scores(scores) for tier, scores in each.tiers.items()},
        "empty": each.empty,
        "refused": each.refused,
        "against_lexical": gain and {"mrr": _interval(gain.mrr), "top1": _interval(gain.top1)},
        "cost": {
            "query_ms": cost.query,
            "embedding_seconds": cost.embed,
            "stored_bytes_per_record": cost.stored,
            "memory_bytes_per_record": cost.in_memory,
        },
    }


def _scores(scores: Any) -> dict[str, Any]:
    return {
        "questions": scores.questions,
        "top1": scores.top1,
        "top5": scores.top5,
        "mrr": scores.mrr,
    }


def _interval(interval: Interval) -> dict[str, float]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


# --- tables --------------------------------------------------------------------------------------


def _print(found: Evaluation, as_markdown: bool) -> None:
    """What was measured as tables: what is found, by tiers, and what it takes."""
    click.echo(
        f"{found.records:,} records; {found.answerable:,} questions with an answer among them,"
        f" {found.unanswerable:,} without"
        + (f"; {found.blank:,} lines without a query were left out" if found.blank else "")
    )
    for warning in found.warnings:
        click.echo(terminal_line(warning), err=True)
    for table in (_found_table(found), _tier_table(found), _cost_table(found)):
        if table is not None:
            click.echo()
            for line in _markdown(table) if as_markdown else _aligned(table):
                click.echo(line)


_WHAT = ["layer", "embedder", "text"]

Table = list[list[str]]
"""Rows of cells, the first of which are the headings."""


def _what(each: Measured) -> list[str]:
    what = each.configuration
    return [what.layer, terminal_line(what.embedder or _NOTHING), what.rendering or _NOTHING]


def _found_table(found: Evaluation) -> Table:
    heads = [*_WHAT, "top-1", "top-5", "MRR", "left empty", "rightly empty"]
    heads += ["MRR against words alone", "top-1 against words alone"]
    rows = [heads]
    for each in found.measured:
        gain = each.gain
        rows.append(
            [
                *_what(each),
                *(f"{each.scores.top1}", f"{each.scores.top5}", f"{each.scores.mrr:.3f}"),
                f"{each.empty} of {found.answerable}",
                f"{each.refused} of {found.unanswerable}",
                *(_signed(interval) for interval in ((gain.mrr, gain.top1) if gain else ())),
                *([] if gain else [_NOTHING, _NOTHING]),
            ]
        )
    return rows


def _tier_table(found: Evaluation) -> Table | None:
    tiers = found.measured[0].tiers
    if not tiers:
        return None
    named = [
        f"{terminal_line(tier) or 'others'} ({each.questions})" for tier, each in tiers.items()
    ]
    rows = [[*_WHAT, *named]]
    for each in found.measured:
        scores = each.tiers.values()
        rows.append([*_what(each), *(f"{s.top1}/{s.top5}/{s.mrr:.3f}" for s in scores)])
    return rows


def _cost_table(found: Evaluation) -> Table:
    heads = ["CPU ms a query", "s to embed all", "bytes a record, stored", "in memory"]
    rows = [[*_WHAT, *heads]]
    for each in found.measured:
        cost = each.cost
        rest = ((cost.embed, ".1f"), (cost.stored, ",.0f"), (cost.in_memory, ",.0f"))
        cells = (_NOTHING if value is None else format(value, form) for value, form in rest)
        rows.append([*_what(each), f"{cost.query:.2f}", *cells])
    return rows


def _signed(interval: Interval) -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def _aligned(table: Table) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def _markdown(table: Table) -> Iterable[str]:
    for number, row in enumerate(table):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
        if number == 0:
            yield "|" + " --- |" * len(row)
