"""Counts the evictions of the topics that have no series of their own, by namespace.

The sum over these topics falls when a topic gets series of its own, and rises by all that a topic
ever evicted when it loses them. An alert would take either for evictions. So this counts on where
evictions happened: what a topic evicted before it had series of its own stays in the sum, and what
it evicted while it had them never comes into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import sub
from typing import TypeAlias

from headgate.flow.quota.backlog_quota import QuotaType

Acts: TypeAlias = tuple[int, ...]
"""Evictions, by type of quota."""

_NONE: Acts = (0,) * len(QuotaType)


class LeftOutEvictions:
    """The counters of one broker, from page to page."""

    def __init__(self) -> None:
        self._before: dict[str, Acts] | None = None
        """Of the topics with series of their own on the last page; None before the first one."""
        self._counted: dict[str, Acts] = {}
        """Of topics while they had series of their own, by namespace."""

    def rest(
        self,
        all_acts: Mapping[str, Sequence[int]],
        shown: Mapping[str, Mapping[str, Acts]],
    ) -> dict[str, Acts]:
        """The evictions of the other topics, by namespace.

        ``all_acts`` has those of each namespace since the start, ``shown`` those of the topics with
        series of their own on this page, by namespace and name.
        """
        before = self._before
        for namespace, topics in shown.items():
            counted = self._counted.get(namespace, _NONE)
            for name, acts in topics.items():
                since = _NONE if before is None else before.get(name, acts)
                # A topic that was unloaded meanwhile counts from 0.
                counted = tuple(
                    total + (now - then if now >= then else now)
                    for total, now, then in zip(counted, acts, since, strict=True)
                )
            self._counted[namespace] = counted
        self._before = {name: acts for topics in shown.values() for name, acts in topics.items()}
        # A namespace that is deleted is counted no more, and counts from 0 when it comes again.
        self._counted = {
            namespace: tuple(map(min, self._counted[namespace], acts))
            for namespace, acts in all_acts.items()
            if namespace in self._counted
        }
        return {
            namespace: tuple(map(sub, acts, self._counted.get(namespace, _NONE)))
            for namespace, acts in all_acts.items()
        }
