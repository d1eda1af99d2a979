"""Consumers and producers that came or left, summed up by minute and subscription."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from headgate.base.texts import printable
from headgate.base.units import MS_PER_S, S_PER_MINUTE
from headgate.engine.client_observer import Client, ClientSubscription, ClientTopic
from headgate.explain.change_log import CHANGES_MAX, NAME_MAX, NAMES_MAX, TOPIC_MAX, ChangeLog
from headgate.explain.changes import CONSUMERS, PRODUCERS
from headgate.flow.sentences.changes import ClientsFacts, clients_clause

VERSIONS_MAX: Final = 3

_SPAN_MS: Final = S_PER_MINUTE * MS_PER_S


class ClientChange:
    """The clients of one kind that came or left within a minute."""

    __slots__ = (
        "after", "at_ms", "before", "came", "came_back", "came_names", "came_versions", "left",
        "left_names", "left_versions", "subscription",
    )  # fmt: skip

    def __init__(self, at_ms: int, subscription: str, before: int) -> None:
        """``subscription`` is empty for producers; ``before`` of them were there before."""
        self.at_ms = at_ms
        self.subscription = subscription
        self.before = self.after = before
        self.came = self.left = self.came_back = 0
        self.came_names: list[str] = []
        self.left_names: list[str] = []
        self.came_versions: list[str] = []
        self.left_versions: list[str] = []

    @property
    def kind(self) -> str:
        """What came or left: consumers or producers."""
        return CONSUMERS if self.subscription else PRODUCERS

    @property
    def level(self) -> str:
        """Where it was made."""
        return "subscription" if self.subscription else "topic"

    @property
    def role(self) -> str:
        """Empty: a client came by itself."""
        return ""

    @property
    def relieves(self) -> bool:
        """Whether consumers only came, or producers only left."""
        return not self.left if self.subscription else not self.came

    def note_came(self, name: str, version: str, after: int) -> None:
        """One more connected; now there are ``after``."""
        self.came += 1
        self.after = after
        if name in self.left_names:
            self.left_names.remove(name)
            self.came_back += 1
        else:
            _keep(self.came_names, name, NAMES_MAX)
            _keep(self.came_versions, version, VERSIONS_MAX)

    def note_left(self, name: str, version: str, after: int) -> None:
        """One left; now there are ``after``."""
        self.after = after
        is_named = name in self.came_names
        if is_named or self.left - self.came_back >= self.before:
            # It came within this minute and did not stay: no other is left to leave.
            self.came -= 1
            if is_named:
                self.came_names.remove(name)
            return
        self.left += 1
        _keep(self.left_names, name, NAMES_MAX)
        _keep(self.left_versions, version, VERSIONS_MAX)

    @property
    def is_empty(self) -> bool:
        """Whether all that came left again."""
        return not self.came and not self.left

    def clause(self, *, with_values: bool = True) -> str:  # noqa: ARG002 - it has none
        """What came or left, in words."""
        came_back = self.came_back
        if self.left > NAMES_MAX and not self.left_names:
            # All came back whose names were kept: so, then, did the others.
            came_back = min(self.left, self.came)
        return clients_clause(
            ClientsFacts(
                printable(self.subscription),
                self.came,
                self.left,
                self.came_names if self.came > came_back else (),
                self.left_names,
                came_back,
                self.before,
                self.after,
                self.came_versions if self.came > came_back else (),
                self.left_versions,
            )
        )


def _keep(texts: list[str], text: str, most: int) -> None:
    if text and text not in texts and len(texts) < most:
        texts.append(text)


class ClientChanges:
    """Sums up the clients of one engine that come and go: its client observer.

    Readers are left out: each has a subscription of its own, which ends with it. Topics of the
    broker itself are, too.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        """``now_ms`` is the wall clock of the turn."""
        self._now_ms = now_ms
        self.log: ChangeLog[ClientChange] = ChangeLog(CHANGES_MAX, TOPIC_MAX)
        """By the full name of the topic, or of the partition."""

    def consumer_added(self, subscription: ClientSubscription, consumer: Client, /) -> None:
        if subscription.is_durable and not subscription.topic.is_system:
            count = len(subscription.consumers)
            change = self._change(subscription.topic, subscription.name, count - 1)
            change.note_came(_short(consumer.name), _short(consumer.client_version), count)

    def consumer_removed(self, subscription: ClientSubscription, consumer: Client, /) -> None:
        if subscription.is_durable and not subscription.topic.is_system:
            count = len(subscription.consumers)
            change = self._change(subscription.topic, subscription.name, count + 1)
            change.note_left(_short(consumer.name), _short(consumer.client_version), count)

    def producer_added(self, topic: ClientTopic, producer: Client, /) -> None:
        if not topic.is_system:
            count = len(topic.producers)
            change = self._change(topic, "", count - 1)
            change.note_came(_short(producer.name), _short(producer.client_version), count)

    def producer_removed(self, topic: ClientTopic, producer: Client, /) -> None:
        if not topic.is_system:
            count = len(topic.producers)
            change = self._change(topic, "", count + 1)
            change.note_left(_short(producer.name), _short(producer.client_version), count)

    def _change(self, topic: ClientTopic, subscription: str, before: int) -> ClientChange:
        """The change of this minute, which may have just begun."""
        now_ms = self._now_ms()
        for each in self.log.newest_first(topic.name.full):
            if not 0 <= now_ms - each.at_ms < _SPAN_MS:
                break
            if each.subscription == subscription:
                return each
        change = ClientChange(now_ms, subscription, before)
        self.log.add(topic.name.full, change)
        return change


def _short(name: str) -> str:
    return printable(name[:NAME_MAX])


class MergedClients:
    """The changes of a topic's partitions as those of the topic: a client of all partitions counts
    once. Of changes within a minute the one with most clients stands for all."""

    def __init__(self) -> None:
        self._found: dict[str, list[ClientChange]] = {}
        """By subscription."""

    def add(self, changes: Iterable[ClientChange]) -> None:
        """Add those of one partition."""
        for change in changes:
            known = self._found.setdefault(change.subscription, [])
            for index, other in enumerate(known):
                if abs(change.at_ms - other.at_ms) < _SPAN_MS:
                    if change.came + change.left > other.came + other.left:
                        known[index] = change
                    break
            else:
                known.append(change)

    def all(self) -> list[ClientChange]:
        """What was added, merged, without clients that came and left again."""
        return [each for known in self._found.values() for each in known if not each.is_empty]
