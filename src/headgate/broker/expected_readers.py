"""Readers that are expected back after a SEEK.

A SEEK disconnects the reader; its subscription, which is not durable, waits for it without a client
that would be charged with it. So each tenant has a bounded number of such subscriptions.
"""

from __future__ import annotations

from typing import Final

from headgate.base.units import NS_PER_S
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription

RETURN_NS: Final = 60 * NS_PER_S
"""If the reader does not reconnect within this time, its subscription is removed."""

EXPECTED_MAX: Final = 10_000
"""Subscriptions of one tenant that wait, about 7 KiB each. Beyond it the one that waits for longest
is removed; most clients come back to the place of their SEEK all the same."""

GIVEN_UP_MAX: Final = 2
"""Those that are removed for one that begins to wait. Near the limit on the memory of the process
a tenant has a part of its number."""


class ExpectedReaders:
    """The subscriptions of one broker that wait for their readers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._until_ns: dict[str, dict[Subscription, int]] = {}
        """By tenant, the longest waiting first. Some of them have consumers again, or are gone."""
        self._is_watching = False

    def expect(self, subscription: Subscription) -> None:
        """The reader of a subscription seeks, and is disconnected."""
        tenant = subscription.topic.name.tenant
        waiting = self._until_ns.setdefault(tenant, {})
        waiting.pop(subscription, None)
        waiting[subscription] = self._engine.now_ns + RETURN_NS
        for _ in range(GIVEN_UP_MAX):
            if len(waiting) > self._engine.memory_part.part * EXPECTED_MAX:
                self._give_up_first(waiting)
        self._watch()

    def _watch(self) -> None:
        """Look again when the first one has waited for long enough."""
        if self._until_ns and not self._is_watching:
            self._is_watching = True
            first_ns = min(next(iter(each.values())) for each in self._until_ns.values())
            self._engine.wake_at(first_ns, self._look)

    def _look(self) -> None:
        self._is_watching = False
        now_ns = self._engine.now_ns
        for tenant, waiting in list(self._until_ns.items()):
            while waiting and next(iter(waiting.values())) <= now_ns:
                self._give_up_first(waiting)
            if not waiting:
                del self._until_ns[tenant]
        self._watch()

    @staticmethod
    def _give_up_first(waiting: dict[Subscription, int]) -> None:
        subscription = next(iter(waiting))
        del waiting[subscription]
        if not (subscription.consumers or subscription.fenced or subscription.removed):
            subscription.topic.remove_subscription(subscription.name)
