"""Shares, passes, the queue with its back lane, and the rounds by the wall clock."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_concept_recall.indexing.passes import Ask, Outcome, Pass, Queue, Share
from datasette_concept_recall.indexing.rounds import RETRY_SECONDS, Rounds
from indexing import FakeClock

NOON = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
MAILBOX = 16 * 60.0


# -- shares ---------------------------------------------------------------------------------------


def documents_allowed(share: Share, clock: FakeClock, seconds_each: float, most: int) -> int:
    done = 0
    while done < most and share.allows_another():
        share.note_read()
        clock.advance(seconds_each)
        done += 1
    return done


@pytest.mark.parametrize(
    ("seconds_each", "expected"), [(1.0, 300), (7.0, 43), (299.9, 2), (300.0, 1), (0.0, 2_000)]
)
def test_a_share_ends_at_the_first_document_after_five_minutes(
    seconds_each: float, expected: int
) -> None:
    """Documents are begun as long as less than 300 seconds went by, and none after that."""
    clock = FakeClock()
    assert documents_allowed(Share(clock), clock, seconds_each, 2_000) == expected


def test_a_share_of_mails_ends_after_as_many_as_it_may_read() -> None:
    """A limit of reads ends a share whatever time is left, with failures counted as reads."""
    clock = FakeClock()
    assert documents_allowed(Share(clock, reads=500), clock, 0.1, 2_000) == 500


def test_a_share_without_a_limit_of_time_still_counts_reads() -> None:
    """Without seconds a share never ends by the clock, but by its reads."""
    clock = FakeClock()
    assert documents_allowed(Share(clock, None), clock, 10_000.0, 50) == 50
    assert documents_allowed(Share(clock, None, reads=3), clock, 10_000.0, 50) == 3


def test_asking_does_not_use_up_a_share() -> None:
    """Only documents that are read count, so that asking twice before one costs nothing."""
    share = Share(FakeClock(), reads=2)
    assert [share.allows_another() for _ in range(5)] == [True] * 5


def overruns(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_step_that_does_not_ask_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """More than twice the share without a question gives one warning, and no second in the step."""
    clock = FakeClock()
    share = Share(clock)
    with caplog.at_level(logging.WARNING):
        clock.advance(601)
        share.allows_another()
        assert len(overruns(caplog)) == 1
        assert "601 seconds" in overruns(caplog)[0]
        clock.advance(5_000)
        share.allows_another()
    assert len(overruns(caplog)) == 1


def test_a_step_that_asks_often_enough_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Twice the share is no overrun yet, and the time is measured from question to question."""
    clock = FakeClock()
    share = Share(clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            clock.advance(600)
            share.allows_another()
    assert overruns(caplog) == []


def test_each_pass_begins_with_nothing_remembered() -> None:
    """What one pass remembers is never seen by another."""
    first = Pass()
    first.failed[b"d7"] = "timeout"
    first.told.add("timeout")
    first.seen.add(b"d1")
    assert Pass() == Pass(failed={}, told=set(), verify=False, seen=set())


# -- the queue ------------------------------------------------------------------------------------

A, B, C, D = 1, 2, 3, 4


def test_a_follow_up_waits_behind_every_source_that_begins() -> None:
    """A step with more to do comes after sources that were asked for before, while and after it
    ran."""
    queue = Queue()
    queue.ask(A, "start")
    queue.ask(B, "start")
    assert queue.next() == Ask(A, "start")
    queue.ask(C, "changed")
    queue.finished(Outcome.MORE_TO_DO)
    queue.ask(D, "round")
    order = []
    while (ask := queue.next()) is not None:
        order.append(ask)
        queue.finished(Outcome.DONE)
    assert order == [
        Ask(B, "start"), Ask(C, "changed"), Ask(D, "round"), Ask(A, "continuation"),
    ]  # fmt: skip


def test_two_passes_with_more_to_do_take_turns() -> None:
    """Follow-ups are served in the order in which their steps ended, so that none starves."""
    queue = Queue()
    queue.ask(A, "start")
    queue.ask(B, "start")
    order = []
    for _ in range(6):
        ask = queue.next()
        assert ask is not None
        order.append(ask.source_id)
        queue.finished(Outcome.MORE_TO_DO)
    assert order == [A, B, A, B, A, B]


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.MORE_TO_DO, Outcome.FAILED])
def test_fifty_changes_during_a_run_give_one_follow_up_with_the_first_reason(
    outcome: Outcome,
) -> None:
    """However often a source is asked for while it is active, it runs once more, and it is told
    the reason that came first."""
    queue = Queue()
    queue.ask(A, "start")
    queue.next()
    heard = [queue.ask(A, reason) for reason in ["changed", *["round"] * 49]]
    assert heard == [True] + [False] * 49
    queue.finished(outcome)
    assert queue.next() == Ask(A, "changed")
    queue.finished(Outcome.DONE)
    assert queue.next() is None


def test_a_queued_source_is_queued_once_with_the_first_reason() -> None:
    """Asking again for a source that waits changes neither its place nor its reason."""
    queue = Queue()
    assert queue.ask(A, "start")
    assert queue.ask(B, "start")
    assert not queue.ask(A, "retry")
    assert len(queue) == 2
    assert queue.next() == Ask(A, "start")


def test_a_source_in_the_back_lane_is_not_queued_a_second_time() -> None:
    """A change in a source whose pass goes on later is found by that step."""
    queue = Queue()
    queue.ask(A, "start")
    queue.next()
    queue.finished(Outcome.MORE_TO_DO)
    assert not queue.ask(A, "changed")
    assert queue.is_queued(A)
    assert len(queue) == 1


def test_only_one_source_is_active_at_a_time() -> None:
    """While a step is made nothing else is handed out."""
    queue = Queue()
    queue.ask(A, "start")
    queue.ask(B, "start")
    queue.next()
    assert queue.active == A
    assert queue.next() is None
    queue.finished(Outcome.DONE)
    assert queue.next() == Ask(B, "start")


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.MORE_TO_DO])
def test_only_a_step_with_more_to_do_is_followed_by_another(outcome: Outcome) -> None:
    """No other end of a step brings the source back by itself, so there is no endless hand-over."""
    queue = Queue()
    queue.ask(A, "start")
    queue.next()
    queue.finished(outcome)
    assert queue.next() is None


def test_a_dropped_source_is_forgotten_in_both_lanes_and_as_a_follow_up() -> None:
    """Nothing that was asked of a removed source is left, and the others keep their places."""
    queue = Queue()
    queue.ask(A, "start")
    queue.next()
    queue.finished(Outcome.MORE_TO_DO)
    queue.ask(B, "start")
    queue.ask(C, "start")
    queue.next()
    queue.ask(B, "changed")
    for source_id in (A, B):
        queue.drop(source_id)
    queue.finished(Outcome.DONE)
    assert queue.next() == Ask(C, "start")
    queue.finished(Outcome.DONE)
    assert queue.next() is None


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(1, 4)),
        st.just(("next", 0)),
        st.tuples(st.just("finish"), st.sampled_from(list(Outcome))),
        st.tuples(st.just("drop"), st.integers(1, 4)),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(ACTIONS)
def test_no_source_is_ever_queued_twice_and_none_that_was_asked_for_is_lost(
    actions: list[tuple[str, object]],
) -> None:
    """After any history the queue hands out exactly the sources that are owed a run, each once."""
    queue = Queue()
    owed: set[int] = set()
    for action, value in actions:
        if action == "ask":
            assert isinstance(value, int)
            queue.ask(value, "changed")
            owed.add(value)
        elif action == "drop":
            assert isinstance(value, int)
            queue.drop(value)
            owed.discard(value)
        elif action == "next":
            ask = queue.next()
            if ask is not None:
                owed.remove(ask.source_id)
        elif queue.active is not None:
            assert isinstance(value, Outcome)
            if value is Outcome.MORE_TO_DO:
                owed.add(queue.active)
            queue.finished(value)
    if queue.active is not None:
        queue.finished(Outcome.DONE)
    handed = []
    while (ask := queue.next()) is not None:
        handed.append(ask.source_id)
        queue.finished(Outcome.DONE)
    assert sorted(handed) == sorted(owed)


# -- rounds ---------------------------------------------------------------------------------------


def due_at(rounds: Rounds, seconds: list[float]) -> list[float]:
    """Of moments after noon those at which it was time."""
    return [each for each in seconds if rounds.is_due(NOON + timedelta(seconds=each))]


def every(step: float, first: float, last: float) -> list[float]:
    return [first + step * number for number in range(int((last - first) / step) + 1)]


@pytest.mark.parametrize(
    ("interval", "asked", "expected"),
    [
        (MAILBOX, every(0.5, 0, 58.5), []),
        (MAILBOX, [59.0], [59.0]),
        (MAILBOX, [58.9], []),
        (MAILBOX, [60.0], [60.0]),
        (MAILBOX, [61.0, 61.5, 62.0], [61.0]),
        (MAILBOX, [60.0, 1018.9, 1019.0], [60.0, 1019.0]),
        (MAILBOX, [59.0, 60.0, 1019.0, 1020.0], [59.0, 1019.0]),
        (MAILBOX, [60.0, 1200.0, 1979.0], [60.0, 1200.0, 1979.0]),
        (MAILBOX, every(10, 0, 3000), [60.0, 1020.0, 1980.0, 2940.0]),
        (600.0, every(10, 0, 1900), [60.0, 660.0, 1260.0, 1860.0]),
        (30.0, every(5, 0, 100), [30.0, 60.0, 90.0]),
    ],
)
def test_rounds_come_by_the_wall_clock(
    interval: float, asked: list[float], expected: list[float]
) -> None:
    """The first round is a minute after the beginning, the others an interval apart, a check up to
    a second early counts, and one that was late does not move those after it."""
    assert due_at(Rounds(interval, NOON), asked) == expected


@pytest.mark.parametrize("back", [10.0, 600.0, 3600.0, 86_400.0])
def test_a_clock_that_is_set_back_delays_a_round_by_one_interval_at_most(back: float) -> None:
    """After the clock went back the next round is at most an interval away, and then all go on."""
    rounds = Rounds(MAILBOX, NOON)
    assert due_at(rounds, every(10, 0, 500)) == [60.0]
    turned = 500.0 - back
    due = due_at(rounds, every(10, turned, turned + 3 * MAILBOX))
    assert due[0] - turned <= MAILBOX
    assert [later - sooner for sooner, later in pairwise(due)] == [MAILBOX] * (len(due) - 1)


def test_after_twelve_hours_of_sleep_there_is_one_round_at_once() -> None:
    """The rounds that were slept through are made up for by a single one."""
    rounds = Rounds(MAILBOX, NOON)
    due_at(rounds, every(10, 0, 500))
    woken = 500.0 + 12 * 3600
    due = due_at(rounds, every(10, woken, woken + MAILBOX))
    assert due[0] == woken
    assert len(due) == 2


def retried(rounds: Rounds, seconds: list[float]) -> list[float]:
    """When it was time, for a source that cannot be reached at any of them."""
    found = []
    for each in seconds:
        now = NOON + timedelta(seconds=each)
        if rounds.is_due(now):
            found.append(each)
            rounds.unreachable(now)
    return found


def test_an_unreachable_source_is_tried_again_after_1_2_4_and_8_minutes() -> None:
    """After four retries that become rarer it is left to the rounds."""
    assert RETRY_SECONDS == (60, 120, 240, 480)
    day = 24 * 3600.0
    rounds = Rounds(day, NOON)
    tries = retried(rounds, every(1, 0, 3 * 3600))
    assert tries[0] == 59
    gaps = [later - sooner for sooner, later in pairwise(tries)]
    assert gaps == [59, 119, 239, 479]  # each check may come a second early
    assert rounds.next == NOON + timedelta(seconds=60 + day)


def test_after_the_retries_only_rounds_are_left() -> None:
    """A source that stays away is looked at once in every interval."""
    rounds = Rounds(MAILBOX, NOON)
    tries = retried(rounds, every(1, 0, 4 * MAILBOX))
    assert [each for each in tries if each > 1_400] == [1_979, 2_939]


def test_a_source_that_was_reached_has_all_its_retries_again() -> None:
    """Success ends a retry that waits, and the next failure is followed by the first one."""
    rounds = Rounds(24 * 3600.0, NOON)
    for _ in range(3):
        rounds.unreachable(NOON)
    rounds.reached()
    assert rounds.next == NOON + timedelta(seconds=60)
    rounds.unreachable(NOON - timedelta(seconds=50))
    assert rounds.next == NOON + timedelta(seconds=10)


def test_after_sleep_the_retries_begin_anew() -> None:
    """A machine that was away from the net while it slept tries as often as at the beginning."""
    rounds = Rounds(24 * 3600.0, NOON)
    retried(rounds, every(1, 0, 1_200))
    woken = 1_200 + 12 * 3600.0
    now = NOON + timedelta(seconds=woken)
    rounds.is_due(now)
    rounds.unreachable(now)
    tries = retried(rounds, every(1, woken + 1, woken + 1_200))
    assert [round(each - woken) for each in tries] == [59, 178, 417, 896]


def test_a_long_step_of_another_source_is_no_sleep() -> None:
    """The service asks nothing while a share of five minutes is made, and that brings no source
    more retries than it has."""
    rounds = Rounds(24 * 3600.0, NOON)
    tries = retried(rounds, every(300, 0, 4 * 3600))
    assert len(tries) == 1 + len(RETRY_SECONDS)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-4_000, 4_000), max_size=40), st.sampled_from([30.0, 600.0, MAILBOX]))
def test_the_next_round_is_never_further_away_than_an_interval(
    jumps: list[float], interval: float
) -> None:
    """Whatever the clock does, a source is looked at an interval from now at the latest."""
    rounds = Rounds(interval, NOON)
    now = NOON
    for jump in jumps:
        now += timedelta(seconds=jump)
        rounds.is_due(now)
        assert rounds.next <= now + timedelta(seconds=interval + 1)
        assert rounds.next > now + timedelta(seconds=1)


def test_a_step_gets_on_however_long_its_listing_took() -> None:
    """The time of a share begins after the listing, and one document is always read."""
    clock = FakeClock()
    share = Share(clock, 10.0)
    clock.advance(1_000)
    share.begin()
    assert share.allows_another()
    none = Share(clock, 0.0)
    clock.advance(1)
    assert none.allows_another()
    none.note_read()
    assert not none.allows_another()
