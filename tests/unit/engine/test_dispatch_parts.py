"""Parts of batches on a shared subscription: who holds what is left, and what comes again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.engine.consumer import Consumer
from headgate.engine.dispatch_shared import SharedDispatcher
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from tests.unit.engine.harness import FakePort, Rig

ENTRIES, MESSAGES = 12, 5
FULL = (1 << MESSAGES) - 1
kinds = st.sampled_from(
    ["part"] * 8 + ["ack"] * 3 + ["redeliver"] * 3 + ["redeliver all", "leave", "skip", "flow"]
)
steps = st.lists(
    st.tuples(kinds, st.integers(0, 1), st.integers(0, ENTRIES - 1), st.integers(0, FULL)),
    max_size=60,
)


class Story:
    """Two consumers of one subscription, and what each message should have become."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.subscription: Subscription = self.rig.subscribe()
        self.ports = [FakePort(), FakePort()]
        self.consumers: list[Consumer] = []
        self.acked = [0] * ENTRIES
        for index in range(2):
            self.consumers.append(self.join(index))
        self.rig.publish(ENTRIES, messages=MESSAGES)

    def join(self, index: int) -> Consumer:
        consumer = Consumer(index, f"c{index}", self.ports[index])
        self.subscription.add_consumer(consumer, SubscriptionType.SHARED)
        self.subscription.flow(consumer, 35)
        return consumer

    def step(self, kind: str, index: int, ordinal: int, mask: int) -> None:
        subscription, consumer = self.subscription, self.consumers[index]
        if kind == "part":
            subscription.ack_messages(consumer, ordinal, mask)
            self.acked[ordinal] |= mask
        elif kind == "ack":
            subscription.ack_entry(consumer, ordinal)
            self.acked[ordinal] = FULL
        elif kind == "redeliver":
            subscription.redeliver(consumer, [ordinal], -1)
        elif kind == "redeliver all":
            subscription.redeliver(consumer, None, -1)
        elif kind == "leave":
            subscription.remove_consumer(consumer)
            self.consumers[index] = self.join(index)
        elif kind == "skip":
            subscription.skip_to(ordinal // 3)
            self.acked[: ordinal // 3] = [FULL] * (ordinal // 3)
        else:
            subscription.flow(consumer, 35)
        sent = [len(port.entries) for port in self.ports]
        before = [list(port.entries) for port in self.ports]
        for port in self.ports:
            port.left.clear()
        self.rig.flush()
        for port, count, entries in zip(self.ports, sent, before, strict=True):
            assert port.entries[:count] == entries
            for at, _, _ in port.entries[count:]:
                assert self.acked[at] != FULL
                left = FULL & ~self.acked[at]
                assert port.left.get(at, ()) == (() if left == FULL else (left,))

    def check(self) -> None:
        subscription = self.subscription
        dispatcher = subscription.dispatcher
        assert isinstance(dispatcher, SharedDispatcher)
        left = [FULL.bit_count() - acked.bit_count() for acked in self.acked]
        assert subscription.backlog_messages == sum(left)
        held_by = dict.fromkeys(self.consumers, 0)
        for consumer, held in dispatcher.delivered():
            for ordinal, acked in held.items():
                assert acked == self.acked[ordinal].bit_count()
                held_by[consumer] += left[ordinal]
        for consumer, messages in held_by.items():
            assert consumer.unacked_messages == messages
        assert dispatcher.in_flight_messages() == sum(held_by.values())
        waits = [ordinal for ordinal in dispatcher.replaying if self.acked[ordinal] != FULL]
        assert dispatcher.to_redeliver().messages == sum(left[ordinal] for ordinal in waits)
        waiting, _ = dispatcher.waiting()
        assert waiting + dispatcher.in_flight_messages() == subscription.backlog_messages


@settings(max_examples=300, deadline=None)
@given(steps)
def test_only_what_is_left_is_held_and_comes_again(
    work: list[tuple[str, int, int, int]],
) -> None:
    story = Story()
    for step in work:
        story.step(*step)
        story.check()
