"""The dispatch limits of a real broker, as real clients meet them in each second.

One play of all scenes (see ``limit_scenes``), judged rule by rule. Limits are upper bounds that no
noise excuses: they are judged where the clocks leave no doubt. That all of a limit is used is
judged with an allowance for time that the machine measurably took from the processes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from statistics import quantiles
from typing import Any

import pytest

from tests.service import limit_scenes
from tests.service.limit_scenes import (
    BATCHES,
    BURST,
    BYTES,
    CHANGED,
    DISTURBED,
    LARGE,
    LATE_JOIN_S,
    SETTLE_S,
    SHARED,
    SHARED_BYTES,
    SINGLE,
    SLOW,
    SLOW_WORK_S,
    TAIL,
    TWENTY,
    WIDE,
    WIDE_BYTES_PER_S,
    WIDE_MESSAGES_PER_S,
    WIDE_ONE,
    WIDE_THREE,
    Played,
    Scene,
)
from tests.service.measuring import each_second, merged, most_arrived, most_in, noted_late_s
from tests.service.process import BrokerProcess

pytestmark = pytest.mark.alone

STEADY = [SINGLE, BATCHES, BYTES, SHARED, SHARED_BYTES, SLOW, TAIL]
"""Scenes whose limit stays as it is and that always have somebody waiting."""

USED = 0.97
"""Of a limit, in every second: 98 % by the law, and a little for the edges of a client's second."""

APPLIES_S = 0.1
"""A change of a limit is in force after this."""

SOON_S = 0.5
"""Time enough for a few hundred messages to be published, delivered and listened to."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    brokers = [BrokerProcess(tmp_path_factory.mktemp(name)) for name in ("narrow", "wide")]
    try:
        yield limit_scenes.play(*brokers)
    finally:
        for broker in brokers:
            broker.close()


def limit_of(played: Played, scene: Scene) -> float:
    """Messages a second that a scene's limit allows."""
    if scene.messages_per_s:
        return scene.messages_per_s
    return scene.bytes_per_s / played.entry_bytes(scene)


def bound_of(played: Played, scene: Scene) -> int:
    """The most that any window may hold: up to the limit, and the rest of the last entry."""
    if scene.messages_per_s:
        return scene.messages_per_s + scene.batch - 1
    # Entries differ by a byte or two.
    return math.ceil(limit_of(played, scene)) + 1


def end_of(played: Played, scene: Scene) -> float:
    """Until when the scene's limit counts as it is set."""
    return played.marks["entries count"] if scene.batch > 1 else played.end


def arrived(
    played: Played, scenes: Iterable[Scene], begin: float, end: float, window_s: float = 1.0
) -> int:
    of = [(played.polls[scene.name], played.arrivals[scene.name]) for scene in scenes]
    return most_arrived(window_s, begin, end, of)


def most_noted(
    played: Played, scene: Scene, end: float, delivered_once_until: float = math.inf
) -> int:
    """The most that clients noted in any window, once their first messages are listened to.

    All scenes' first second comes at once to a few listening threads, so it is noted late and
    seems to lie nearer to the second one; :func:`arrived` judges it, whatever was late. Later a
    window is shorter by what the clients were late.
    """
    begin, clients = played.begin + SETTLE_S, played.arrivals[scene.name]
    polls = played.polls[scene.name].within(begin, min(end, delivered_once_until))
    late_s = max(played.late_s, noted_late_s(polls, clients))
    at = [at for at in merged(clients.values()) if begin <= at < end]
    return most_in(at, 1.0 - late_s)


def check_used(
    played: Played, scenes: list[Scene], limit: float, entry: int, begin: float, end: float
) -> None:
    """Every whole second carries what the limit allows, less what the machine took."""
    at = merged(each for scene in scenes for each in played.arrivals[scene.name].values())
    seconds = each_second(at, begin, end)
    assert seconds
    for number, count in enumerate(seconds):
        second = begin + number
        lost_s = played.noise.lost_s(played.pids[scenes[0].name], second, second + 1)
        assert count >= (USED - lost_s) * limit - entry, (scenes[0].name, seconds, number, lost_s)


def grown(played: Played, scene: Scene, begin: float, end: float) -> dict[str, int]:
    """What each subscription got between the first and the last statistics of a time."""
    polls = played.polls[scene.name].within(begin, end)
    assert polls[-1].asked - polls[0].asked > (end - begin) / 4
    return {name: count - polls[0].messages[name] for name, count in polls[-1].messages.items()}


def soon_s(played: Played, scene: Scene, begin: float) -> float:
    """In what time something quick is done and noted that begins now."""
    return SOON_S + played.late_s + played.noise.lost_s(played.pids[scene.name], begin, begin + 2)


def spread(counts: Iterable[int]) -> int:
    found = list(counts)
    return max(found) - min(found)


def events(stats: Any, subscription: str = "s") -> dict[str, int]:
    """Throttled events of a subscription that are not 0, by their field's middle part."""
    found = stats["subscriptions"][subscription]
    return {
        key.removeprefix("dispatchThrottled").removesuffix("Limit"): value
        for key, value in found.items()
        if key.startswith("dispatchThrottled") and "Events" in key and value
    }


# Rule 1.1: no window holds more than the limit and the rest of an entry --------------------------


@pytest.mark.parametrize("scene", [*STEADY, LARGE], ids=lambda scene: scene.name)
def test_no_window_holds_more_than_the_limit(played: Played, scene: Scene) -> None:
    begin, end = played.begin - 5, end_of(played, scene)
    bound = bound_of(played, scene)
    polls = played.polls[scene.name]
    assert polls.most_in(1.0, begin, end, lambda poll: sum(poll.messages.values())) <= bound
    assert arrived(played, [scene], begin, end) <= bound
    assert most_noted(played, scene, end) <= bound


def test_reconnects_unload_and_policies_give_nothing_away(played: Played) -> None:
    """A reconnect, the same limit set again, an unload, and policies that are none of its own."""
    limit, unloaded = DISTURBED.messages_per_s, played.marks["unloaded"]
    # The broker counts anew from the unload on.
    assert arrived(played, [DISTURBED], played.begin - 5, unloaded) <= limit
    assert most_noted(played, DISTURBED, played.end, played.marks["reconnected"]) <= limit
    for mark in ("reconnected", "same limit", "unloaded", "other policies"):
        done = played.marks[f"{mark}, done"]
        # It goes on: the client comes back within its back-off.
        assert played.only(DISTURBED).count(done, done + 1.2 + played.late_s) > 0
    payloads = played.only(DISTURBED).payloads
    assert {int(each) for each in payloads} == set(range(max(map(int, payloads)) + 1))


# Rule 1.2: bursts, paces and full use ------------------------------------------------------------


def test_a_burst_below_the_limit_is_not_delayed(played: Played) -> None:
    at, marks = played.only(BURST).at, played.marks
    done = marks["first burst, done"]
    assert at[249] - done <= soon_s(played, BURST, done)
    assert events(played.earlier_stats[BURST.name]) == {}


def test_what_exceeds_the_limit_waits_for_the_window(played: Played) -> None:
    at, marks = played.only(BURST).at, played.marks
    limit = BURST.messages_per_s
    assert len(at) == 400
    done = marks["second burst, done"]
    assert at[limit - 1] - done <= soon_s(played, BURST, done)
    # The first message was delivered after it was published, this one a period after that.
    assert at[limit] >= marks["first burst"] + 1.0
    paced_s = (400 - limit) / limit
    paced = marks["first burst, done"] + 1.0 + paced_s
    assert at[-1] <= paced + soon_s(played, BURST, done)
    assert 1 <= events(played.stats[BURST.name])["MsgEventsBySubscription"] <= 2


@pytest.mark.parametrize("scene", STEADY, ids=lambda scene: scene.name)
def test_each_second_carries_what_the_limit_allows(played: Played, scene: Scene) -> None:
    limit = limit_of(played, scene)
    begin, end = played.begin + SETTLE_S, end_of(played, scene)
    check_used(played, [scene], limit, scene.batch, begin, end)


@pytest.mark.parametrize("scene", STEADY, ids=lambda scene: scene.name)
def test_deliveries_are_paced(played: Played, scene: Scene) -> None:
    """A tenth of a second carries its part: slices of 8 ms, of 20 at most after a late one."""
    begin, end = played.begin + SETTLE_S, end_of(played, scene)
    at = [at for at in merged(played.arrivals[scene.name].values()) if begin <= at < end]
    part = 0.1 + 0.028 + played.late_s
    assert most_in(at, 0.1) <= limit_of(played, scene) * part + scene.batch


# Rule 1.4: turns ---------------------------------------------------------------------------------


def test_twenty_subscriptions_share_a_topic_limit(played: Played) -> None:
    counts = grown(played, SHARED, played.begin + SETTLE_S, played.end)
    assert list(counts) == TWENTY
    assert spread(counts.values()) <= 2
    assert min(counts.values()) > 5


def test_an_old_backlog_and_the_tail_share_alike(played: Played) -> None:
    """Rule 1.3: who waits for the disk keeps its turn and blocks nobody."""
    counts = grown(played, TAIL, played.begin + SETTLE_S, played.end)
    assert spread(counts.values()) <= 2


def test_a_newcomer_starts_at_the_present_minimum(played: Played) -> None:
    limit = limit_of(played, SHARED_BYTES)
    joined = played.marks["joined"]
    assert joined == pytest.approx(played.begin + LATE_JOIN_S, abs=1)
    newcomer = played.arrivals[SHARED_BYTES.name]["two"]
    assert 0 < newcomer.count(joined, joined + 1) <= limit / 2 + 2
    counts = grown(played, SHARED_BYTES, joined + SETTLE_S, played.end)
    assert spread(counts.values()) <= 2


def test_a_slow_neighbour_gets_what_it_takes_and_the_other_the_rest(played: Played) -> None:
    slow = played.arrivals[SLOW.name]["slow"].at
    gaps_s = [after - before for before, after in pairwise(slow)]
    # The quickest quarter tells: what keeps the others is the machine.
    assert quantiles(gaps_s)[0] < SLOW_WORK_S + 0.06
    counts = grown(played, SLOW, played.begin + SETTLE_S, played.end)
    assert counts["quick"] > 8 * counts["slow"]


# Rule 1.5: changes -------------------------------------------------------------------------------


def test_a_cut_counts_what_was_delivered_in_proportion(played: Played) -> None:
    """From 400/s to 100: what went before counts a quarter, so that the pace is the new one at
    once, without a hole."""
    marks, arrivals = played.marks, played.only(CHANGED)
    assert arrived(played, [CHANGED], played.begin - 5, marks["cut"]) <= 400
    applied = marks["cut, done"] + APPLIES_S
    assert arrived(played, [CHANGED], applied, marks["raised"]) <= 100
    for at in arrivals.at:
        if applied + played.late_s < at < marks["raised"]:
            since = at - 1 + played.late_s
            before = arrivals.count(since, marks["cut"]) if since < marks["cut"] else 0
            assert before / 4 + arrivals.count(max(since, applied), at) <= 100
    begin = applied
    lost_s = played.noise.lost_s(played.pids[CHANGED.name], begin, marks["raised"])
    expected = 100 * (marks["raised"] - begin - lost_s) * USED
    assert arrivals.count(begin, marks["raised"]) >= expected - 2


def test_a_raise_frees_the_difference(played: Played) -> None:
    marks = played.marks
    applied = marks["raised, done"] + APPLIES_S
    assert arrived(played, [CHANGED], applied, marks["removed"]) <= 300
    check_used(played, [CHANGED], 300, 1, applied, marks["removed"])


def test_a_limit_removed_holds_nobody(played: Played) -> None:
    removed = played.marks["removed, done"]
    at = played.only(CHANGED).at
    assert len(at) == CHANGED.backlog
    assert played.only(CHANGED).count(removed, played.end) > 200
    assert at[-1] <= removed + APPLIES_S + soon_s(played, CHANGED, removed)


# Rules 1.6 and 1.9: entries ----------------------------------------------------------------------


def test_entries_larger_than_the_limit_are_paid_for(played: Played) -> None:
    begin, end = played.begin + SETTLE_S, end_of(played, LARGE)
    count = played.only(LARGE).count(begin, end)
    assert count % LARGE.batch == 0
    due = LARGE.messages_per_s * (end - begin)
    lost = LARGE.messages_per_s * played.noise.lost_s(played.pids[LARGE.name], begin, end)
    assert due - lost - LARGE.batch <= count <= due + LARGE.batch


def test_a_batch_counts_as_one_when_so_set(played: Played) -> None:
    mark = played.marks["entries count, done"]
    before = played.only(BATCHES).count(0, mark)
    assert BATCHES.backlog - before > 500
    assert len(played.only(BATCHES).at) == BATCHES.backlog
    assert played.only(BATCHES).at[-1] <= mark + APPLIES_S + soon_s(played, BATCHES, mark)


# The broker's own limit -------------------------------------------------------------------------


def test_the_broker_limit_holds_in_messages_and_then_in_bytes(played: Played) -> None:
    size = played.entry_bytes(WIDE_ONE)
    change = played.marks["broker limit in bytes"]
    changed = played.marks["broker limit in bytes, done"] + APPLIES_S
    in_bytes = WIDE_BYTES_PER_S / size
    assert arrived(played, WIDE, played.begin - 5, change) <= WIDE_MESSAGES_PER_S
    assert arrived(played, WIDE, changed + 1, played.end) <= math.ceil(in_bytes) + 1
    check_used(played, WIDE, WIDE_MESSAGES_PER_S, 1, played.begin + SETTLE_S, change)
    check_used(played, WIDE, in_bytes, 1, changed + SETTLE_S, played.end)


def test_the_broker_limit_is_shared_between_topics_then_subscriptions(played: Played) -> None:
    for begin, end, limit in (
        (played.begin + SETTLE_S, played.marks["broker limit in bytes"], WIDE_MESSAGES_PER_S),
        (played.marks["broker limit in bytes, done"] + SETTLE_S, played.end, 140),
    ):
        assert spread(grown(played, WIDE_THREE, begin, end).values()) <= 2
        one, three = (
            sum(each.count(begin, end) for each in played.arrivals[scene.name].values())
            for scene in (WIDE_ONE, WIDE_THREE)
        )
        assert abs(one - three) <= 4 + limit * played.late_s


# What is counted --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scene", "subscription", "field"),
    [
        (SINGLE, "s", "MsgEventsBySubscription"),
        (BYTES, "s", "BytesEventsBySubscription"),
        (SHARED, "s07", "MsgEventsByTopic"),
        (SHARED_BYTES, "one", "BytesEventsByTopic"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_throttled_events_are_periods_in_which_it_waited(
    played: Played, scene: Scene, subscription: str, field: str
) -> None:
    """Rule 2.1."""
    found = events(played.stats[scene.name], subscription)
    assert list(found) == [field]
    # Whoever waits since it came did not come before the scene's first message.
    first = min(each.at[0] for each in played.arrivals[scene.name].values())
    periods = played.marks[f"statistics of {scene.name}"] - first
    assert periods / 2 - 1 <= found[field] <= periods + 1


def test_a_limit_that_delays_nobody_has_no_events(played: Played) -> None:
    """Two limits: what the second one, far above, was never a reason for is not counted there."""
    assert list(events(played.stats[DISTURBED.name])) == ["MsgEventsBySubscription"]
