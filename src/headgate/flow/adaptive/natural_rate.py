"""The natural rate: what a topic publishes while no limit holds it (law 5.4).

It has two averages (messages and bytes a second), which rise quickly and fall slowly, and a slowly
falling maximum of each. They learn from *samples*: a cycle, or several short ones until half a
second is full. A sample counts if something was published in it and nothing waited, in it or in the
sample before: right after a wait, clients catch up. So neither silence nor a limit changes the
rate, and a topic that was busy minutes ago does not wake up with the rate of a trickle.

A topic that has always waited, for example for an administrator's limit, is known only by what it
was allowed. That rate is provisional until the first free sample replaces it.
"""

from __future__ import annotations

from typing import Final

from headgate.base.units import NS_PER_MS, NS_PER_S

RISE: Final = 0.30
"""The weight of a sample above the average."""
FALL: Final = 0.05
"""The weight of a sample below the average."""
SAMPLE_NS_MIN: Final = 500 * NS_PER_MS
"""A rate over a shorter time depends more on batches than on the rate."""
PEAK_HALVING_NS: Final = 300 * NS_PER_S
"""The time of publishing in which the maximum halves."""
PEAK_SHARE: Final = 0.25
"""The natural rate is at least this part of the maximum."""
PROBE: Final = 1.01
"""The assumed growth of a limited topic in a cycle in which it used all that it was allowed."""
PROBE_PEAKS_MAX: Final = 2.0
"""The most that this growth adds up to, in multiples of the maximum."""


class NaturalRate:
    """The natural rate of one topic, and its last sample."""

    __slots__ = (
        "_bytes",
        "_follows_wait",
        "_is_provisional",
        "_mark_bytes",
        "_mark_messages",
        "_mark_ns",
        "_messages",
        "_peak_bytes",
        "_peak_messages",
        "_waited",
        "published_bytes",
        "published_messages",
    )

    def __init__(self) -> None:
        self.published_messages = 0.0
        """Messages a second in the last sample, whether anything waited or not."""
        self.published_bytes = 0.0
        self._messages = self._bytes = 0.0
        self._peak_messages = self._peak_bytes = 0.0
        self._mark_ns: int | None = None
        self._mark_messages = self._mark_bytes = 0
        self._waited = self._follows_wait = False
        self._is_provisional = True

    @property
    def is_known(self) -> bool:
        """Whether any sample counted yet."""
        return self._messages > 0.0

    @property
    def messages(self) -> float:
        """Messages a second; 0 while unknown."""
        return max(self._messages, self._peak_messages * PEAK_SHARE)

    @property
    def bytes(self) -> float:
        """Bytes a second; 0 while unknown."""
        return max(self._bytes, self._peak_bytes * PEAK_SHARE)

    def observe(
        self,
        messages: int,
        size_bytes: int,
        waited: bool,
        now_ns: int,
        cycle_ns: int,
        is_limited: bool = False,
    ) -> bool:
        """Take the counters of this cycle; returns whether they complete a sample.

        ``waited`` says that something waited since the last call. The controller calls this in each
        cycle in which the counters changed, so the new messages were published within the last
        ``cycle_ns``. ``is_limited`` says that an adaptive limit was in force, so that a rate with
        waits is not even provisional.
        """
        mark_ns = self._mark_ns
        if mark_ns is None or messages < self._mark_messages:
            self._mark_ns, self._mark_messages, self._mark_bytes = now_ns, messages, size_bytes
            self._waited = False
            return False
        if waited:
            self._waited = True
        span_ns = now_ns - mark_ns
        if span_ns < SAMPLE_NS_MIN:
            return False
        if span_ns > cycle_ns and span_ns > NS_PER_S:
            span_ns = cycle_ns if cycle_ns > NS_PER_S else NS_PER_S
        per_second = NS_PER_S / span_ns
        published = (messages - self._mark_messages) * per_second
        published_bytes = (size_bytes - self._mark_bytes) * per_second
        waited, follows_wait = self._waited, self._follows_wait
        self.published_messages = published
        self.published_bytes = published_bytes
        self._mark_ns, self._mark_messages, self._mark_bytes = now_ns, messages, size_bytes
        self._waited, self._follows_wait = False, waited
        if published > 0.0:
            if not waited and not follows_wait:
                if self._is_provisional:
                    self._is_provisional = False
                    self._replace(published, published_bytes)
                else:
                    self._learn(published, published_bytes, span_ns)
            elif self._is_provisional and not is_limited:
                self._replace(published, published_bytes)
        return True

    def _replace(self, messages: float, size_bytes: float) -> None:
        self._messages = self._peak_messages = messages
        self._bytes = self._peak_bytes = size_bytes

    def _learn(self, messages: float, size_bytes: float, span_ns: int) -> None:
        kept = 0.5 ** (span_ns / PEAK_HALVING_NS)
        gain = messages - self._messages
        self._messages += gain * (RISE if gain > 0.0 else FALL)
        gain = size_bytes - self._bytes
        self._bytes += gain * (RISE if gain > 0.0 else FALL)
        peak = self._peak_messages * kept
        self._peak_messages = messages if messages > peak else peak
        peak = self._peak_bytes * kept
        self._peak_bytes = size_bytes if size_bytes > peak else peak

    def probe(self) -> None:
        """Assume that a limited topic has grown: it used all that it was allowed, and pressure did
        not rise."""
        messages, size_bytes = self.messages * PROBE, self.bytes * PROBE
        if messages <= self._peak_messages * PROBE_PEAKS_MAX:
            self._messages = messages
        if size_bytes <= self._peak_bytes * PROBE_PEAKS_MAX:
            self._bytes = size_bytes
