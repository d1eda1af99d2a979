"""What a started broker holds, against what the model promises."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.broker.service import Broker
from headgate.engine.topic import Topic
from headgate.ledger import TopicLog
from headgate.ledger.space.accounting import space_errors
from headgate.metadata.catalog import Catalog
from headgate.metadata.policies import Retention
from headgate.wire.batch import unpack_batch
from headgate.wire.entry import batch_size, parse_metadata, payload_of
from tests.sim.brokersim.model import START, Cursor, Entry, Model, Presence, ViolationError
from tests.unit.ledger.support import wrong_segments

READ_ENTRIES = 64
READ_BYTES = 1 << 16


def payloads_of(body: bytes) -> tuple[bytes, ...]:
    """The messages of a stored entry."""
    count = batch_size(parse_metadata(body))
    payload = payload_of(body)
    return (payload,) if count is None else tuple(p for _, p in unpack_batch(payload, count))


class Audit:
    """One comparison. It blocks and changes nothing at the broker."""

    def __init__(self, model: Model, broker: Broker, topics: Sequence[str]) -> None:
        self._model = model
        self._broker = broker
        self._topics = topics
        self.parts_count = 0
        """Batches that it found with the acknowledgements of messages that were promised."""

    def check(self) -> None:
        """Compare all topics.

        Raises:
            ViolationError: the broker lost, made up, doubled or moved something.
        """
        for managed in self._broker.logs:
            if errors := space_errors(managed.log._state):
                raise ViolationError(f"the accounts of the log are wrong: {errors}")
            if wrong := wrong_segments(managed.log):
                raise ViolationError(f"the space check finds {wrong} wrong segments")
        for name in self._topics:
            topic = self._broker.engine.topics.get(name)
            number = -1 if topic is None else topic.log.number
            self._check_incarnation(name, number)
            if topic is None:
                self._check_absence(name)
                continue
            held = self._held(name, topic)
            self._check_promised(name, topic, held)
            self._check_sessions(held)
            self._check_cursors(name, topic, held)

    def _check_incarnation(self, name: str, number: int) -> None:
        row = self._broker.catalog.topic(name)
        if (row.number if row is not None else -1) != number:
            raise ViolationError(f"{name} is loaded as {number}, metadata says {row}")
        if number in self._model.dead:
            raise ViolationError(f"{name} was deleted and is back as {number}")

    def _check_absence(self, name: str) -> None:
        for cursor in self._model.cursors_of(name):
            if not cursor.settled:
                continue
            if cursor.presence is Presence.PRESENT:
                raise ViolationError(f"{name} is gone with its subscription {cursor.name}")
            self._model.topic_gone(name, [cursor])

    def _held(self, name: str, topic: Topic) -> list[Entry]:
        """Every entry that the topic holds, read from the disk."""
        log = self._broker.log.topic(topic.log.number)
        for ledger in log.ledgers():
            self._model.learn_ledger(ledger.ledger_id, log.number)
        found: list[Entry] = []
        last = START
        while (ordinal := log.first + len(found)) < log.end:
            for body in self._read(log, ordinal):
                position = log.position(log.first + len(found))
                if position <= last:
                    raise ViolationError(f"{name}: {position} follows {last}")
                last = position
                entry = self._model.identify(name, position, payloads_of(body))
                if entry.number != log.number:
                    raise ViolationError(f"{name}: entry {entry.uid} is of topic {entry.number}")
                count = log.message_count(log.first + len(found))
                if count != len(entry.payloads):
                    raise ViolationError(f"{name}: {position} counts {count} messages")
                entry.promised = True
                found.append(entry)
        return found

    def _read(self, log: TopicLog, ordinal: int) -> list[bytes]:
        plan = self._broker.log.locate(log, ordinal, READ_ENTRIES, READ_BYTES)
        return [body for _, _, body in self._broker.log.read(plan)]

    def _check_promised(self, name: str, topic: Topic, held: list[Entry]) -> None:
        """What was promised is there; what is not, was trimmed or went with its topic."""
        model, log = self._model, topic.log
        there = {entry.uid for entry in held}
        first = log.position(log.first) if held else None
        durable = [s.name for s in topic.subscriptions.values() if s.is_durable]
        for entry in model.entries:
            if entry.topic != name or not entry.promised or entry.uid in there:
                continue
            if entry.number != log.number:
                if entry.number not in model.doomed:
                    raise ViolationError(f"{name}: entry {entry.uid} went, nobody deleted it")
                continue
            if first is not None and (entry.position or START) > first:
                raise ViolationError(f"{name}: entry {entry.uid} at {entry.position} is lost")
            for cursor in (model.cursor(name, sub) for sub in durable):
                if cursor.settled and not cursor.may_be_acked(entry):
                    raise ViolationError(
                        f"{name}: entry {entry.uid} at {entry.position} is lost to {cursor.name}"
                    )

    def _check_sessions(self, held: list[Entry]) -> None:
        """Each producer's entries are in the order of its sends, without gaps."""
        last: dict[int, int] = {}
        for entry in held:
            before = last.get(entry.session, -1)
            if entry.index <= before:
                raise ViolationError(f"entry {entry.uid} comes after a later one of its producer")
            if before >= 0:
                sent = self._model.sessions[entry.session]
                lost = [e.uid for e in sent[before + 1 : entry.index] if not e.refused]
                if lost:
                    raise ViolationError(f"entries {lost} before {entry.uid} are missing")
            last[entry.session] = entry.index

    def _check_cursors(self, name: str, topic: Topic, held: list[Entry]) -> None:
        present = {s.name for s in topic.subscriptions.values() if s.is_durable}
        consumers = sum(len(s.consumers) for s in topic.subscriptions.values())
        if topic.consumers_count != consumers:
            raise ViolationError(f"{name} counts {topic.consumers_count} of {consumers} consumers")
        if topic.quota is not None and topic.quota.eviction is not None:
            return  # what it took is known when all of it is over
        for cursor in self._model.cursors_of(name):
            if cursor.settled:
                self._check_cursor(cursor, topic, held, present)
        unknown = present - {cursor.name for cursor in self._model.cursors_of(name)}
        if unknown:
            raise ViolationError(f"{name} has subscriptions {unknown} that nobody made")

    def _check_cursor(
        self, cursor: Cursor, topic: Topic, held: list[Entry], present: set[str]
    ) -> None:
        label = f"{cursor.topic} {cursor.name}"
        if cursor.presence is Presence.UNKNOWN:
            if cursor.name in present:
                cursor.presence = Presence.PRESENT
            else:
                cursor.forget()
        if (cursor.presence is Presence.PRESENT) != (cursor.name in present):
            raise ViolationError(f"{label} should be {cursor.presence.value}")
        if cursor.presence is not Presence.PRESENT:
            return
        acks = topic.subscriptions[cursor.name].acks
        for ordinal, entry in enumerate(held, topic.log.first):
            acked = acks.is_acked(ordinal)
            position = entry.position or START
            if acked and not cursor.may_be_acked(entry):
                raise ViolationError(f"{label}: entry {entry.uid} at {position} was never acked")
            if not acked and cursor.must_be_acked(position):
                raise ViolationError(f"{label}: the ack of {position} is lost")
            if not acked:
                self._check_part(label, cursor, entry, acks.partly_acked_mask(ordinal))

    def _check_part(self, label: str, cursor: Cursor, entry: Entry, acked: int) -> None:
        """Of an entry exactly those messages are acknowledged that should be."""
        position = entry.position or START
        all_of_it = (1 << len(entry.payloads)) - 1
        must = all_of_it & ~cursor.must_left.get(position, -1)
        self.parts_count += must != 0
        if must & ~acked:
            raise ViolationError(f"{label}: acks of messages of {position} are lost")
        if acked & cursor.may_left.get(position, -1) and not cursor.may_be_acked(entry):
            raise ViolationError(f"{label}: messages of {position} were never acked")


def not_given_back(broker: Broker) -> list[str]:
    """What a broker at rest still keeps on its disk though nobody has a claim to it."""
    kept = [
        f"entries {topic.log.first} to {topic.log.end} of {name}"
        for name, topic in broker.engine.topics.items()
        if any(s.is_durable for s in topic.subscriptions.values())
        and not any(s.backlog_entries for s in topic.subscriptions.values())
        and topic.log.first < topic.log.end
        and broker.policies.applied_retention(topic.name) == Retention()
    ]
    active = broker.log.active_segment()
    return kept + [
        f"segment {info.segment}"
        for info in broker.log._state.segments.values()
        if not info.live_runs and info.segment < active
    ]


def left_over(broker: Broker) -> list[str]:
    """What a broker still keeps when all its topics are deleted and all clients are gone."""
    engine, log = broker.engine, broker.log
    kept: dict[str, object] = {
        "topics": engine.topics,
        "topics by number": engine.by_number,
        "unloaded topics": engine._unloaded,
        "subscriptions of tenants": engine.durable_by_tenant,
        "properties of tenants": engine.properties.by_tenant,
        "properties of unloaded topics": engine.properties._by_unloaded,
        "partly acknowledged batches": engine.partials.held_bytes,
        "those of unloaded topics": engine.partials._by_unloaded,
        "topics at the gate": engine.gate.topics,
        "waiting topics": engine.gate.queue.waiting,
        "demand": engine.gate.demand,
        "topics in the log": log._state.topics,
        "cursors in the log": log._state.cursors,
        "changes of subscriptions": broker.subscriptions.running_count,
        "waiting reads": not broker.reader.is_idle(),
        "connections": broker.connections,
        "paused connections": broker.connections.paused,
        "metadata in flight": broker.catalog.in_flight_count,
        "policies": _policies(broker.catalog),
        "live runs": sum(info.live_runs for info in log._state.segments.values()),
        "room on the disk": not_given_back(broker),
        "dirty subscriptions": len(engine._dirty) + len(engine._crowd),
        "bytes that wait": engine.parked.bytes,
        "producers that wait": engine.parked._producers,
        "connections that are paused": engine.parked._paused,
        "connections with room": engine.admission._with_room,
        "topics at the publish gate": engine.admission.gate.topics,
        "publishing demand": engine.admission.gate.demand,
        "quotas to look at": engine.quotas._dirty,
    }
    return [f"{name}: {value}" for name, value in kept.items() if value]


def _policies(catalog: Catalog) -> list[str]:
    return [key for kind, key in catalog._state._overlay if kind == "topic_policies"] + [
        key
        for kind, rows in catalog._state._rows.items()
        if kind == "topic_policies"
        for key in rows
    ]
