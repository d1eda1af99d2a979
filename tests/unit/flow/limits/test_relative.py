"""The publish rate that relative limits follow (law 1.7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.limits.rate_limit import PerSecond, RateLimit
from headgate.flow.limits.relative import HALVING_NS, SAMPLE_NS, PublishRate

START_NS = 123_456_789


class Publisher:
    """Publishes steadily and samples as a broker does."""

    def __init__(self, *, known: tuple[float, ...] | None = None) -> None:
        self.now_ns = START_NS
        self.count = 0.0
        self.rate = PublishRate((0,), START_NS, known=known)

    def publish(self, per_s: float, seconds: float) -> list[float]:
        """The followed rate after each sample."""
        followed = []
        for _ in range(round(seconds * NS_PER_S / SAMPLE_NS)):
            self.now_ns += SAMPLE_NS
            self.count += per_s * SAMPLE_NS / NS_PER_S
            self.rate.sample((round(self.count),), self.now_ns)
            followed.append(self.rate.per_second[0])
        return followed


@pytest.mark.parametrize(("published", "limit"), [(1_000, 1_200), (5_000, 5_200)])
def test_the_examples_of_the_document(published: int, limit: int) -> None:
    publisher = Publisher()
    publisher.publish(published, 2)
    messages = publisher.rate.per_second[0]
    relative = RateLimit(200, None, relative=True)
    assert relative.above(PerSecond(messages, 0.0)).messages == limit


def test_a_rise_is_followed_within_two_seconds() -> None:
    publisher = Publisher()
    publisher.publish(1_000, 3)
    followed = publisher.publish(5_000, 2)
    assert followed[9] == followed[-1] == 5_000
    assert followed == sorted(followed)


def test_a_fall_is_followed_gradually_and_at_most_halved_in_two_seconds() -> None:
    publisher = Publisher()
    publisher.publish(4_000, 3)
    followed = publisher.publish(100, 15)
    assert followed == sorted(followed, reverse=True)
    per_halving = HALVING_NS // SAMPLE_NS
    for earlier, later in zip(followed, followed[per_halving:], strict=False):
        assert later >= earlier / 2 * 0.999
    assert followed[per_halving - 1] == pytest.approx(2_000, rel=0.01)
    assert followed[-1] == 100


def test_it_ends_at_nothing() -> None:
    publisher = Publisher()
    publisher.publish(1_000, 2)
    publisher.publish(0, 25)
    assert publisher.rate.per_second == (0.0,)
    assert not publisher.rate.sample((round(publisher.count),), publisher.now_ns + SAMPLE_NS)


def test_after_a_silence_only_the_last_second_counts() -> None:
    rate = PublishRate((0,), START_NS)
    later_ns = START_NS + 3_600 * NS_PER_S
    rate.resume((0,), later_ns)
    rate.sample((100,), later_ns + 100 * NS_PER_MS)
    assert rate.per_second == (100.0,)


def test_what_was_measured_otherwise_is_where_it_starts() -> None:
    assert Publisher(known=(700.0,)).publish(700, 0.1)[0] == pytest.approx(700, rel=0.05)


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=80), st.lists(st.integers(20, 400)))
def test_it_is_never_below_the_last_second(amounts: list[int], steps_ms: list[int]) -> None:
    """However publishing comes and however late samples are."""
    rate = PublishRate((0,), START_NS)
    history = [(START_NS, 0)]
    for index, amount in enumerate(amounts):
        step_ms = steps_ms[index % len(steps_ms)] if steps_ms else 100
        now_ns = history[-1][0] + step_ms * NS_PER_MS
        history.append((now_ns, history[-1][1] + amount))
        rate.sample((history[-1][1],), now_ns)
        second = [count for at_ns, count in history if at_ns > now_ns - NS_PER_S]
        base_ns, base = next(
            ((at, c) for at, c in reversed(history) if at <= now_ns - NS_PER_S), history[0]
        )
        mean = (second[-1] - base) * NS_PER_S / max(now_ns - base_ns, NS_PER_S)
        assert rate.per_second[0] >= (mean if mean >= 0.5 else 0.0) - 1e-6
