"""Exclusive access of producers to one topic: who has it, who waits for it, and the topic epoch.

A producer in an exclusive access mode first claims the access (:meth:`ExclusiveAccess.claim`). From
then on nobody else gets it, also while its topic epoch is being stored; then it is added to the
topic. What happens at a claim follows Pulsar's ``AbstractTopic.incrementTopicEpochIfNeeded``.

The topic epoch is a number that grows with each new exclusive producer. A producer that reconnects
brings the epoch that it was given. If the topic has a higher one, another producer had the topic
meanwhile, and the returning one is fenced.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Protocol

from headgate.base.errors import HeadgateError
from headgate.engine.errors import ProducerBusyError, ProducerFencedError
from headgate.engine.producer import Producer
from headgate.engine.types import AccessMode


class AccessWaiter(Protocol):
    """A producer that waits for exclusive access, as its topic knows it."""

    producer: Producer

    @property
    def is_wanted(self) -> bool:
        """Whether its client still wants it; if not, it gives up its turn soon."""

    def granted(self) -> None:
        """The producer has claimed the access: connect it, or release the access."""

    def refused(self, error: HeadgateError, /) -> None:
        """The producer will not get the access."""


class ExclusiveAccess:
    """The exclusive access to one topic. It exists once a producer asked for it."""

    __slots__ = ("_is_paused", "_waiters", "epoch", "holder")

    def __init__(self, epoch: int | None = None) -> None:
        self.epoch = epoch
        """The durable topic epoch; None before the first exclusive producer."""
        self.holder: Producer | None = None
        """The producer that has the access, or claimed it and is not connected yet."""
        self._waiters: OrderedDict[Producer, AccessWaiter] = OrderedDict()
        self._is_paused = False

    @property
    def waiting_count(self) -> int:
        """Producers that wait for the access."""
        return len(self._waiters)

    @property
    def waiters(self) -> list[AccessWaiter]:
        """Those that wait now, the first one first."""
        return list(self._waiters.values())

    def has_waiting(self, waiter: AccessWaiter) -> bool:
        """Whether a producer still waits."""
        return self._waiters.get(waiter.producer) is waiter

    @property
    def is_idle(self) -> bool:
        """Whether no producer has the access or waits for it."""
        return self.holder is None and not self._waiters

    def check_shared(self) -> None:
        """Check that a producer may join which shares the topic.

        Raises:
            ProducerBusyError: another producer has exclusive access, or waits for it.
        """
        if not self.is_idle:
            raise ProducerBusyError(f"Topic has an existing exclusive producer{self._name()}")

    def must_wait(self, producer: Producer, connected: Collection[object]) -> bool:
        """Whether a producer that would wait for the access has to; ``connected`` are the topic's
        producers."""
        if producer.access_mode is not AccessMode.WAIT_FOR_EXCLUSIVE or self.holder is producer:
            return False
        return bool(connected) or not self.is_idle

    def wait(self, waiter: AccessWaiter) -> None:
        """Have a producer wait for its turn."""
        self._waiters[waiter.producer] = waiter

    def claim(
        self, producer: Producer, connected: Collection[object], brought: int | None = None
    ) -> list[AccessWaiter]:
        """Give the access to a producer that connects next; ``connected`` are the topic's
        producers, ``brought`` is the topic epoch that the client was given before. With
        ``EXCLUSIVE_WITH_FENCING`` the caller closes the others before it adds the producer, and
        refuses those that waited, which are the result.

        Raises:
            ProducerFencedError: the access is not free, or the brought epoch is over.
        """
        self.check_epoch(brought)
        if self.holder is producer:
            return []
        if producer.access_mode is not AccessMode.EXCLUSIVE_WITH_FENCING:
            if not self.is_idle:
                raise ProducerFencedError(f"Topic has an existing exclusive producer{self._name()}")
            if connected:
                raise ProducerFencedError("Topic has existing shared producers")
        self.holder = producer
        return self.take_waiters()

    def check_epoch(self, brought: int | None) -> None:
        """Check the topic epoch that a client was given before.

        Raises:
            ProducerFencedError: another producer had the access since then.
        """
        if brought is not None and self.epoch is not None and brought < self.epoch:
            raise ProducerFencedError(
                f"Topic epoch has already moved. Current epoch: {self.epoch}, "
                f"Producer epoch: {brought}"
            )

    def confirm(self, producer: Producer, connected: Collection[object]) -> None:
        """Check that a producer may be added which claimed the access, or claim it now.

        Raises:
            ProducerFencedError: another producer has the access meanwhile, or never left it.
        """
        if self.holder is None:
            self.claim(producer, connected)
        if self.holder is not producer or connected:
            raise ProducerFencedError(f"Topic has an existing exclusive producer{self._name()}")

    def next_epoch(self, brought: int | None) -> int:
        """The topic epoch of a producer that has claimed the access."""
        if brought is not None:
            return brought
        return 0 if self.epoch is None else self.epoch + 1

    def stored(self, epoch: int) -> None:
        """A topic epoch is durable."""
        self.epoch = epoch if self.epoch is None else max(self.epoch, epoch)

    def left(self, producer: Producer, connected: Collection[object]) -> None:
        """A producer is gone, or gave up its claim or its turn. If the topic has no producer left,
        the one that waits longest claims the access."""
        if self._waiters.pop(producer, None) is None and self.holder is producer:
            self.holder = None
        self._grant_next(connected)

    def pause(self) -> None:
        """Grant the access to none that waits until :meth:`resume`: the topic is being terminated,
        and those that wait learn whether it is."""
        self._is_paused = True

    def resume(self, connected: Collection[object]) -> None:
        """The topic was not terminated: those that wait may get the access again."""
        self._is_paused = False
        self._grant_next(connected)

    def _grant_next(self, connected: Collection[object]) -> None:
        # Of thousands whose connection has ended none has a turn: each would begin a command.
        while self.holder is None and self._waiters and not connected and not self._is_paused:
            _, waiter = self._waiters.popitem(last=False)
            if waiter.is_wanted:
                self.holder = waiter.producer
                waiter.granted()

    def take_waiters(self) -> list[AccessWaiter]:
        """Those that wait no longer from now on: the caller refuses them."""
        waiters = list(self._waiters.values())
        self._waiters.clear()
        return waiters

    def _name(self) -> str:
        return "" if self.holder is None else f": {self.holder.name}"
