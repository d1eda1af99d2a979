"""What must hold at the gate after any history: rules 1.1, 1.4 and 1.5 as properties."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.base.units import INT64_MAX, NS_PER_MS, NS_PER_S
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.flow.driver import START_NS, Driver, Sender, messages_log

NAMES = ("a/1", "a/2", "b/1")
NODES = (*NAMES, "a", "b", "broker")

limits = st.one_of(
    st.none(),
    st.builds(
        RateLimit,
        st.integers(1, 200),
        st.one_of(st.none(), st.integers(1, 20_000)),
        st.sampled_from([NS_PER_S, 2 * NS_PER_S]),
    ),
)
acts = st.one_of(
    st.tuples(st.just("limit"), st.sampled_from(NODES), limits),
    st.tuples(st.just("want"), st.sampled_from(NAMES), st.integers(0, 300)),
    st.tuples(st.just("run"), st.just(""), st.integers(1, 900)),
)


def play(driver: Driver, act: tuple[str, str, object]) -> None:
    kind, name, value = act
    if kind == "limit":
        node = driver.broker
        if "/" in name:
            node = driver.sender(name).gate  # type: ignore[assignment]
        elif name != "broker":
            node = driver.topic(name)  # type: ignore[assignment]
        node.set_limit(value, driver.now_ns)  # type: ignore[arg-type]
    elif kind == "want":
        driver.sender(name, wanted=value)  # type: ignore[arg-type]
    else:
        driver.run(int(value) / 1_000)  # type: ignore[call-overload]


def waiting(driver: Driver) -> list[Sender]:
    return [s for s in driver.senders.values() if s.wanted and s.gate.limited]


@given(st.lists(acts, max_size=30), st.integers(0, 1_000))
def test_nobody_waits_while_room_and_pace_allow(
    story: list[tuple[str, str, object]], seed: int
) -> None:
    """Rule 1.4: whoever still waits is refused by a budget of its own path at this instant."""
    driver = Driver(seed=seed)
    for name in NAMES:
        driver.sender(name, messages=1 + seed % 7)
    for act in story:
        play(driver, act)
        driver.run(0)
        for sender in waiting(driver):
            budgets = sender.gate.budgets + sender.gate.topic.shared
            assert any(b.release_ns(driver.now_ns) > driver.now_ns for b in budgets), sender.name


@settings(max_examples=60)
@given(
    st.integers(2, 12),
    st.integers(1, 20),
    st.integers(5, 500),
    st.booleans(),
    st.lists(
        st.tuples(st.integers(1, 700), st.one_of(st.none(), st.integers(1, 9_000))),
        min_size=1,
        max_size=12,
    ),
)
def test_equal_waiters_differ_by_two_entries_at_most(
    count: int, entry: int, limit: int, broad: bool, steps: list[tuple[int, int | None]]
) -> None:
    """Rule 1.4: subscriptions of one topic, or topics of the broker, also where the limit moves."""
    driver = Driver(late_ms_max=1.0)
    senders = []
    for index in range(count):
        name = f"t{index}/s" if broad else f"t/s{index}"
        senders.append(driver.sender(name, messages=entry, wanted=0))
    node = driver.broker if broad else driver.topic("t")
    node.set_limit(RateLimit(limit, None), START_NS)
    first = senders[0]
    first.wanted = -(-limit // entry)
    driver.run(0)
    for sender in senders:
        sender.wanted = None
    driver.run(0)
    begin_ns = driver.now_ns + 1
    for step_ms, other in steps:
        if other is not None:
            node.set_limit(RateLimit(other, None), driver.now_ns)
        driver.run(step_ms / 1_000)
        got = [s.messages_between(begin_ns, driver.now_ns + 1) // entry for s in senders]
        assert max(got) - min(got) <= 2


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(1, 1_500)), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_changes_forgive_and_refill_nothing(changes: list[tuple[int, int]], entry: int) -> None:
    """Rules 1.1 and 1.5: in any window no more than the largest limit in force in it."""
    driver = Driver(late_ms_max=1.0)
    sender = driver.sender("t/s", wanted=None, messages=entry)
    in_force: list[tuple[int, int]] = []
    for limit, for_ms in changes:
        in_force.append((driver.now_ns, limit))
        driver.topic("t").set_limit(RateLimit(limit, None), driver.now_ns)
        driver.run(for_ms / 1_000)
    log = messages_log([sender])
    ends = [at_ns for at_ns, _ in in_force[1:]] + [driver.now_ns + 1]
    for at_ns in log.times:
        allowed = max(
            limit
            for (since_ns, limit), end_ns in zip(in_force, ends, strict=True)
            if since_ns <= at_ns and end_ns >= at_ns - NS_PER_S
        )
        assert log.between(at_ns - NS_PER_S + 1, at_ns + 1) <= allowed + entry - 1


@given(st.integers(1, INT64_MAX), st.integers(1, 1 << 62), st.integers(1, 5_000))
def test_no_rate_is_too_large(limit: int, entry: int, step_ms: int) -> None:
    """Any limit up to 2^63-1 with entries of any size: no more than one beyond it, none lost."""
    driver = Driver()
    sender = driver.sender("t/s", messages=entry, wanted=3)
    sender.gate.set_limit(RateLimit(limit, None), driver.now_ns)
    driver.run(0)
    if entry < limit:
        assert len(sender.sent) == min(3, -(-limit // entry))
    else:
        assert len(sender.sent) == 1
    driver.now_ns += step_ms * NS_PER_MS
    driver.run(0)
    assert sum(m for _, m, _ in sender.sent) == entry * len(sender.sent)
