"""The timelines of subscriptions, each made anew at most once in half a minute.

A page asks for those that it shows every few seconds, and one takes a millisecond.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final
from weakref import ref

from headgate.base.sliced import Sliced
from headgate.base.units import NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.explain.timeline import Timeline, timeline
from headgate.observe.explain.window import Part

FRESH_NS: Final = 30 * NS_PER_S
KEPT_MAX: Final = 500
"""Timelines in memory, of about 4 KB each."""


class Timelines:
    """The timelines that were asked for last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[ref[Subscription], tuple[int, Timeline]] = OrderedDict()
        """By the first partition's part: when it was made, and the timeline. A part that has ended
        is not kept for it: it may remember megabytes, which nobody is charged with any more."""

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, parts: Sequence[Part]) -> Sliced[Timeline]:
        """The timeline of one subscription, given as its partitions' parts (at least one)."""
        now_ns = max(part.now.at_ns for part in parts)
        subscription = ref(parts[0].subscription)
        made_ns, found = self._kept.pop(subscription, (0, None))
        if found is None or now_ns - made_ns > FRESH_NS:
            made_ns, found = now_ns, (yield from timeline(parts))
        self._kept[subscription] = made_ns, found
        if len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return found
