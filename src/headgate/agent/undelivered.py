"""How many messages of a backlog no consumer has: the least and the most that is possible.

Pulsar counts the messages with consumers for Shared and Key_Shared only. For other types the number
follows from what was published and sent between looks, once one look shows it.
"""

from __future__ import annotations

from headgate.agent.looks import CursorLook, ProofLook, SubscriptionLook

COUNTED_TYPES = ("Shared", "Key_Shared")
"""The types for which ``unackedMessages`` is counted."""

_BATCH_SHARE = 0.1
"""How far the mean size of batches may be off, as a part of it."""


class Undelivered:
    """The undelivered messages of one subscription from look to look."""

    __slots__ = ("least", "most")

    def __init__(self) -> None:
        self.least = 0.0
        self.most = 0.0

    def note(
        self,
        look: SubscriptionLook,
        due: float,
        entry_messages: float,
        arrived_less_sent: float | None,
    ) -> None:
        """A look that shows ``due`` messages of the backlog that are due. Since the one before,
        ``arrived_less_sent`` more were published than sent; None if it is the first, or the
        consumers are others."""
        if look.type in COUNTED_TYPES and look.unacked is not None:
            error = _BATCH_SHARE * due if entry_messages > 1 else 0.0
            self.least, self.most = due - error - look.unacked, due + error - look.unacked
        elif arrived_less_sent is None:
            sent = [consumer.sent for consumer in look.consumers]
            got = sum(one for one in sent if one is not None) if None not in sent else due
            self.least, self.most = due - got, due
        else:
            self.least += arrived_less_sent
            self.most += arrived_less_sent
        self.least = min(max(self.least, 0.0), due)
        self.most = min(max(self.most, self.least), due)

    def prove(
        self, proof: ProofLook, cursor: CursorLook, due: float, entry_messages: float
    ) -> None:
        """The broker's read position says it exactly, but for what waits to be delivered again."""
        read, last = cursor.read_position, proof.last_position
        if read is None or last is None:
            return
        if read > last:
            self.least = self.most = 0.0
        elif read[0] == last[0]:
            entries = last[1] - max(read[1], 0) + 1
            self.least = self.most = min(entries * entry_messages, due)
        else:
            self.least = min(max(self.least, entry_messages), due)
            self.most = max(self.most, self.least)
