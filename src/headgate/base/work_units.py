"""The table of work units: what each step of work on the event loop costs, in units of about 4 us.

The broker counts work before or while it does it, and stops at a fixed number of units, whatever
clients send. The constants here are what the code counts with; :data:`STEPS` lists them, so that
``bench/turns.py`` can measure each on a machine. A unit is about 4 us of CPU on the machine of
docs/benchmarks.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of work."""

    name: str
    units: int
    per: str
    """What one step is; a command or job has as many as it has of these."""
    bounds: str
    """What stops when the units are used up."""


STEPS: Final[dict[str, Step]] = {}
"""All steps by name."""


def _step(name: str, units: int, per: str, bounds: str) -> int:
    STEPS[name] = Step(name, units, per, bounds)
    return units


UNIT_NS: Final = 4_000
"""About how long a unit takes."""

# Bounds: how many units one turn may use.

SLICE_UNITS: Final = 256
"""The jobs of the scheduler in one iteration of the loop, all together: about a millisecond."""

LONG_SLICE_UNITS: Final = 4 * SLICE_UNITS
JOBS_SHARE: Final = 1 / 2
"""If the other work of an iteration takes long, jobs have this share of its time, up to that bound.
With a millisecond in each iteration, clients that keep the loop busy made an answer that takes a
third of a second last ten."""

PIECE_UNITS: Final = 64
"""What a walk in pieces does between two pauses: a quarter of a millisecond."""

JOB_UNITS_MIN: Final = 16
"""What a job gets at least when its turn comes."""

TURN_UNITS: Final = 256
"""The commands of one connection in one turn, about a millisecond."""

LOOP_UNITS: Final = 512
"""The commands of all connections in one iteration of the loop, and as much again if they need it;
then the others wait in line. Each read of a socket counts :data:`READ`, and :data:`WAITED` more if
its connection had to wait."""

FLUSH_UNITS: Final = 256
"""The dispatch of one turn: less than a millisecond, also where limits apply."""

COMMIT_UNITS: Final = 1_024
"""What the end of a commit does at once, and in each further iteration of the loop, as receipts of
more SENDs than an iteration takes. The window of a client that sends as fast as it can, 1,000
SENDs, fits: with a job for a part of each commit, publishing costs 8 % more.
"""

JOB_STEP_UNITS_MAX: Final = 64
"""The most that a job may do between two places where it can be interrupted."""

SEND_UNITS_MAX: Final = 513
"""A SEND with the longest metadata, the largest of the commands that are carried out at once."""

UPKEEP_UNITS: Final = 2 * 256
"""A step of the upkeep of each of the two logs, which runs beside the jobs in each iteration."""

TURN_UNITS_MAX: Final = (
    3 * LOOP_UNITS
    + SEND_UNITS_MAX
    + LONG_SLICE_UNITS
    + JOB_STEP_UNITS_MAX * 4
    + 2 * FLUSH_UNITS
    + COMMIT_UNITS
    + TURN_UNITS
    + UPKEEP_UNITS
)
"""The most of one iteration of the loop: what an earlier one left of the command budget and a whole
one, the last command of a connection, one slice of jobs with the last step of each class, a flush
with its last subscription, the end of a commit, waiting connections that go on, and upkeep."""

_COMMANDS: Final = "commands of a connection (TURN_UNITS) and of all (LOOP_UNITS)"
_JOBS: Final = "jobs of the scheduler (SLICE_UNITS)"
_FLUSH: Final = "dispatch of a turn (FLUSH_UNITS)"
_COMMIT: Final = "the end of a commit (COMMIT_UNITS)"

# Commands of clients.

READ: Final = _step("read", 1, "a read of a socket", _COMMANDS)
WAITED: Final = _step("waited", 3, "a connection that had to wait in line", _COMMANDS)
GROWN_BYTES_PER_UNIT: Final = 4_096
"""Bytes by which a buffer grows that add 1 unit: its pages come from the system, and what it holds
is copied."""
SEND: Final = _step("send", 1, "a SEND", _COMMANDS)
METADATA_BYTES_PER_UNIT: Final = 1_024
"""Bytes of a message's metadata that add 1 unit to its SEND: two looks at such metadata."""
FLOW: Final = _step("flow", 1, "a FLOW", _COMMANDS)
PING: Final = _step("ping", 1, "a PING or a PONG", _COMMANDS)
ACK_ID: Final = _step("ack id", 1, "an id of an ACK", _COMMANDS)
HOT_BYTES_PER_UNIT: Final = 256
"""Bytes of an ACK, SEND (without its body), FLOW, PING or PONG that add 1 unit, for parsing."""
ACK_MESSAGES_PER_UNIT: Final = 2_048
"""Messages of a batch that add 1 unit to an ACK of some of them: the log stores a bit for each."""
ACKED_PER_UNIT: Final = 8
"""Acknowledged entries in the blocks of 4,096 in which a cursor stands before and behind a
cumulative ACK that add 1 unit to it: it may go through the runs of them."""
REDELIVER_ID: Final = _step("redeliver id", 2, "an id of a REDELIVER", _COMMANDS)
RETURNED_PER_UNIT: Final = 512
"""Entries that add 1 unit when a consumer gives back all that it holds: its dict changes hands, and
the entries are queued in the flushes that follow (``queued again``)."""
COLD: Final = _step("cold command", 8, "any other command", _COMMANDS)
COLD_BYTES_PER_UNIT: Final = 64
"""Bytes of a cold command, or of what is refused while it is parsed, that add 1 unit, for parsing
and for checking its texts."""
CREDENTIALS_CHECKED: Final = _step(
    "credentials checked", 16, "a CONNECT or AUTH_RESPONSE whose token is checked", _COMMANDS
)
"""Beside the command itself. ES256 takes about this, HS256 half of it."""
PATTERN_COMPILED: Final = 480
"""A pattern of topics that a client brings, also one that is refused: RE2 may work on one of 50
characters for two milliseconds."""
HOLDERS_PER_UNIT: Final = 32
"""Consumers that add 1 unit to an ACK, if they are searched for an entry that the acknowledging
consumer does not hold."""

# The flush.

DISPATCHED: Final = _step("dispatched", 1, "an entry that is delivered", _FLUSH)
PUMPED: Final = _step("pumped", 1, "a subscription that is looked at", _FLUSH)
QUEUED_AGAIN: Final = _step("queued again", 1, "an entry that was given back", _FLUSH)
PUT_ASIDE: Final = _step("put aside", 1, "a delayed entry that is not due", _FLUSH)
BECAME_DUE: Final = _step("became due", 1, "a delayed entry that is due now", _FLUSH)
SUBSCRIPTION_EVICTED: Final = 4
"""A subscription that an eviction by a backlog quota passes."""
PRODUCER_ENDED: Final = 4
"""A producer that a backlog quota closes."""
WOKEN_PER_UNIT: Final = 8
"""Subscriptions of a topic with very many that are marked with 1 unit, when entries are durable."""
CONSUMERS_PER_UNIT: Final = 64
"""Consumers of a subscription that add 1 unit to a look at it: it may ask all of them."""

# The end of a commit.

RECEIPTS_PER_UNIT: Final = 2
"""Entries that became durable that add 1 unit: about 2 us each."""
RECEIPT: Final = _step("receipt", 1, "two entries that became durable", _COMMIT)
TOPIC_DURABLE: Final = _step("topic durable", 2, "a topic with such entries", _COMMIT)
WOKEN_AT_ONCE_MAX: Final = 16
"""Subscriptions of such a topic that are marked for the flush at once; the flushes mark more."""
WAITER_TOLD: Final = _step("waiter told", 2, "a request that waited for the commit", _COMMIT)
ACKS_STAGED: Final = _step("acks staged", 2, "a subscription whose acknowledgements go", _COMMIT)

# Jobs.

TOPIC_RESOLVED: Final = _step(
    "topic resolved", 12, "a topic whose limits and quotas are resolved again", _JOBS
)
"""Without its subscriptions and producers."""
TOPIC_LIMIT_RESOLVED: Final = _step(
    "topic limit resolved", 5, "a topic of which one kind of limit is resolved again", _JOBS
)
SUBSCRIPTION_RESOLVED: Final = _step("subscription resolved", 4, "each of its subscriptions", _JOBS)
PRODUCER_RESOLVED: Final = _step(
    "producer resolved", 1, "each of its producers, if another kind of limit applies", _JOBS
)
TOPIC_LOADED: Final = _step("topic loaded", 16, "a topic that is loaded", _JOBS)
SUBSCRIPTION_LOADED: Final = 8
"""Each of its subscriptions."""
PARTITION_FOUND: Final = 1
"""A partition that is looked up by the number that it has in its topic."""
TOPIC_DROPPED: Final = _step("topic dropped", 12, "a topic that is deleted", _JOBS)
"""Without its subscriptions: a partitioned topic is deleted with thousands."""
TOPIC_TRIMMED: Final = _step(
    "topic trimmed", 12, "a topic whose releasable entries are looked for, and trimmed", _JOBS
)
CURSORS_ORDERED_PER_UNIT: Final = 4
"""Cursors that add 1 unit to a look at a topic with many subscriptions, if they have moved since
the last look."""
SUBSCRIPTIONS_ASKED_PER_UNIT: Final = 16
"""Subscriptions of a topic that add 1 unit when the topic is trimmed."""
READER_MOVED: Final = 8
"""A reader that is behind what is trimmed and moves there, with the look-ups of its index."""
CLIENT_CLOSED: Final = _step(
    "client closed", 4, "a producer or consumer that is disconnected", _JOBS
)
COMMAND_CANCELLED: Final = _step(
    "command cancelled", 4, "a command that waits, of a connection that has ended", _JOBS
)
WATCHER_ENDED: Final = _step(
    "watcher ended", 1, "a watcher of topics, of a connection that has ended", _JOBS
)
FORGOTTEN_BYTES_PER_UNIT: Final = 16 * 1_024
"""Bytes of what a subscription remembers of entries that add 1 unit when its last consumer leaves:
most of it is freed at once."""
CONSUMER_RANKED: Final = _step(
    "consumer ranked", 32, "a consumer that joins others of a failover subscription", _JOBS
)
"""Its places on the ring of hashes: about this with names of usual length, twice with the longest.
"""
SUBSCRIPTION_LOOKED_AT: Final = _step(
    "subscription looked at", 1, "a subscription that a walk passes", _JOBS
)
SUBSCRIPTION_REMOVED: Final = _step(
    "subscription removed", 6, "a subscription of a topic that is deleted or unloaded", _JOBS
)
SUBSCRIPTION_RECORDED: Final = _step(
    "subscription recorded", 3, "a subscription that did something, in the history", _JOBS
)
SUBSCRIPTIONS_UNCHANGED_PER_UNIT: Final = 8
"""Subscriptions that did nothing, which the history passes with 1 unit."""
MOVED_PER_UNIT: Final = 32
"""Entries that add 1 unit when a cursor moves: what consumers hold, and what waits for
redelivery."""
SUBSCRIPTION_EXPIRED: Final = _step(
    "subscription expired", 32, "a subscription of a topic whose messages all expire", _JOBS
)
CONNECTION_MEASURED: Final = _step(
    "connection measured", 1, "a connection whose memory is measured", _JOBS
)
"""Without its producers and consumers."""
OBJECTS_PER_MEASURED: Final = 20
"""As many producers and consumers are measured with one unit."""
CONNECTION_SLOWED: Final = _step(
    "connection slowed", 2, "a connection that is no longer read", _JOBS
)
CONNECTION_RESUMED: Final = _step(
    "connection resumed", 16, "a connection that is read again, with a larger buffer", _JOBS
)
REVOCATIONS_LOOKED_UP_PER_UNIT: Final = 3
"""Connections whose role and token a walk looks up among the revoked ones with 1 unit."""
CONNECTION_ENDED: Final = _step("connection ended", 16, "a connection that is closed", _JOBS)
"""Its many clients are closed in slices of their own."""
SCHEMA_TYPE_READ: Final = _step("schema type read", 1, "a type in a definition", _JOBS)
SCHEMA_PAIR_COMPARED: Final = _step(
    "schema pair compared", 1, "a pair of types of a reader's and a writer's schema", _JOBS
)
SCHEMA_FIELDS_PER_UNIT: Final = 16
"""Fields of a record that add 1 unit to a comparison."""
SCHEMA_PROPERTIES_PER_UNIT: Final = 4
"""Properties of a definition that are encoded with 1 unit."""
SCHEMA_BYTES_PER_UNIT: Final = 512
"""Bytes of a definition that are decoded with 1 unit. This cannot be interrupted: the largest
definition takes a millisecond."""
