"""Fair turns where limits move, come and go while somebody waits (law 1.4)."""

from __future__ import annotations

import pytest

from headgate.base.units import NS_PER_S
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.flow.driver import START_NS, Driver, Sender

MANY = 100_000
BYTES = 1_000_000


def large_and_small(driver: Driver, *, broad: bool) -> list[Sender]:
    """Two with endless backlogs, of 10 kB and of 100 B entries."""
    names = ("t/large", "u/small") if broad else ("t/large", "t/small")
    return [
        driver.sender(name, wanted=None, size_bytes=size)
        for name, size in zip(names, (10_000, 100), strict=True)
    ]


def bytes_since(driver: Driver, senders: list[Sender], seconds: int) -> list[int]:
    begin_ns = driver.now_ns
    driver.run(seconds)
    return [sum(size for at_ns, _, size in s.sent if at_ns > begin_ns) for s in senders]


@pytest.mark.parametrize("broad", [False, True])
@pytest.mark.parametrize("steps", [(1, MANY), (100, 1_000, 10_000, MANY), (MANY, MANY)])
def test_bytes_are_shared_alike_whatever_messages_were_limited_to(
    broad: bool, steps: tuple[int, ...]
) -> None:
    driver = Driver()
    senders = large_and_small(driver, broad=broad)
    node = driver.broker if broad else driver.topic("t")
    for messages in steps:
        node.set_limit(RateLimit(messages, BYTES), driver.now_ns)
        driver.run(2.5)
    large, small = bytes_since(driver, senders, 10)
    assert large + small == pytest.approx(10 * BYTES, rel=0.03)
    assert large == pytest.approx(small, rel=0.05)


def test_a_dimension_that_comes_back_weighs_as_it_does_now() -> None:
    driver = Driver()
    senders = large_and_small(driver, broad=False)
    topic = driver.topic("t")
    for limit in (RateLimit(1, None), RateLimit(None, BYTES), RateLimit(MANY, BYTES)):
        topic.set_limit(limit, driver.now_ns)
        driver.run(3)
    large, small = bytes_since(driver, senders, 10)
    assert large == pytest.approx(small, rel=0.05)


@pytest.mark.parametrize(("own", "entry"), [(1, 50), (100, 100), (10, 1)])
def test_lifting_a_topics_limit_under_the_brokers_favours_nobody(own: int, entry: int) -> None:
    """Shares were of the topic's limit, and are of the broker's from then on."""
    driver = Driver()
    driver.broker.set_limit(RateLimit(1_000, None), START_NS)
    topic = driver.topic("t")
    topic.set_limit(RateLimit(own, None), START_NS)
    senders = [driver.sender(f"t/{name}", wanted=None, messages=entry) for name in "ab"]
    driver.run(2.5)
    topic.set_limit(None, driver.now_ns)
    begin_ns = driver.now_ns
    driver.run(10)
    got = [s.messages_between(begin_ns, driver.now_ns + 1) // entry for s in senders]
    assert sum(got) * entry == pytest.approx(10_000, rel=0.1)
    assert max(got) - min(got) <= 2


def test_a_topics_limit_in_place_of_the_brokers_favours_nobody() -> None:
    driver = Driver()
    driver.broker.set_limit(RateLimit(10, None), START_NS)
    senders = [driver.sender(f"t/{name}", wanted=None, messages=50) for name in "ab"]
    driver.run(1)
    driver.topic("t").set_limit(RateLimit(1_000, None), driver.now_ns)
    driver.broker.set_limit(None, driver.now_ns)
    begin_ns = driver.now_ns
    driver.run_until(begin_ns + 5 * NS_PER_S)
    got = [s.messages_between(begin_ns, driver.now_ns + 1) // 50 for s in senders]
    assert max(got) - min(got) <= 2
    assert sum(got) * 50 == pytest.approx(5_000, rel=0.1)
