"""Which entries of a topic go: those that no subscription owes and no retention policy covers.

As in Pulsar they go by whole ledgers, so that whoever reads the list of ledgers knows what is
held. What differs is when a topic's last ledger is closed:

* by need: when the disk has been full for some seconds, and what else can go is gone;
* when a subscription has acknowledged something of it and no reader that is connected is still
  behind that: at the next sweep, not after minutes or hours, also when nothing is published;
* otherwise by its age and size, as Pulsar does, but also when nothing is published. So messages
  that nobody ever subscribed to, and those that a reader still wants, stay as long as there.
"""

from __future__ import annotations

from bisect import bisect_right

from headgate.base.units import MIB, MS_PER_S, S_PER_MINUTE
from headgate.engine.ports import EntryLog
from headgate.engine.topic import Topic
from headgate.ledger import CommitLog
from headgate.metadata.policies import Retention


def unclaimed_end(log: EntryLog, owed: int, retention: Retention, log_ms: int) -> int:
    """One past the entries that nobody has a claim to.

    ``owed`` is the first that some subscription owes. As Pulsar: either bound of the retention
    alone makes what is acknowledged go; -1 bounds nothing.
    """
    minutes, megabytes = retention.retention_time_in_minutes, retention.retention_size_in_mb
    too_old = too_many = log.first
    if minutes == 0:
        too_old = log.end  # also what was received under a clock that was ahead
    elif minutes > 0:
        oldest_ms = log_ms - minutes * S_PER_MINUTE * MS_PER_S
        too_old = log.ordinal_received_at_or_after(oldest_ms + 1)
    if megabytes == 0:
        too_many = log.end
    elif megabytes > 0:
        over_bytes = log.bytes_before(log.end) - megabytes * MIB
        ends = range(log.first, log.end + 1)
        too_many += max(bisect_right(ends, over_bytes, key=log.bytes_before) - 1, 0)
    return min(owed, max(too_old, too_many))


def release(log: CommitLog, topic: Topic, retention: Retention, log_ms: int, *, need: bool) -> int:
    """The first entry to keep; closes the last ledger where that is due, and for ``need``."""
    of_topic = topic.log
    if of_topic.first == of_topic.end:
        return of_topic.first
    goes = unclaimed_end(of_topic, topic.slowest_durable_ordinal(), retention, log_ms)
    if goes <= of_topic.first:
        return of_topic.first
    if goes > of_topic.ledgers()[-1].first_ordinal and (
        need or _is_done_with(topic, goes) or log.ledger_is_over(of_topic, log_ms)
    ):
        log.roll_ledger(of_topic, log_ms)
    keep_from = of_topic.first
    for ledger in of_topic.ledgers()[:-1]:
        after = ledger.first_ordinal + ledger.entries
        if after > goes:
            break
        keep_from = after
    return keep_from


def _is_done_with(topic: Topic, ordinal: int) -> bool:
    """Whether a stored subscription acknowledged what is before ``ordinal``, and no reader lags."""
    subscriptions = topic.subscriptions.values()
    return any(s.is_durable for s in subscriptions) and all(
        s.acks.mark_delete + 1 >= ordinal for s in subscriptions
    )
