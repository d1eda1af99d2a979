"""One broker that lives through many power cuts, and what it must show after each.

A seed decides what clients and administrators do, where the power goes, and what of the unsynced
data the disk keeps. The machine is cut again and again: each start recovers what the one before
left, some starts are cut themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headgate.base.errors import HeadgateError
from headgate.base.names import NamespaceName, parse_topic
from headgate.base.positions import Position
from headgate.engine.topic import Topic
from headgate.ledger import CommitLog, LedgerSettings
from headgate.ledger.space.accounting import space_errors
from headgate.metadata.policies import Retention
from headgate.testing import World
from tests.sim.test_log_and_metadata_cuts import (
    TOPIC,
    Machine,
    PowerIsOffError,
    Story,
    Tag,
    first_of,
    tag_of,
)

SETTINGS = {"retentionCheckIntervalInSeconds": "1"}
LEDGER = LedgerSettings(
    segment_bytes=8192,
    extent_bytes=1024,
    checkpoint_records=25,
    checkpoint_bytes=8192,
    ledger_entries_max=5,
    ledger_age_ms_min=0,
)
POLICIES = NamespaceName("public", "default")
KEPT = Retention(retention_time_in_minutes=7, retention_size_in_mb=7)
SUBSCRIPTION = "s"
PINNING = parse_topic("persistent://public/default/pinning")
"""A topic that nobody reads: its few small messages lie in the segments of all others, so that
these are rewritten."""
STEPS_MAX = 14
OPERATIONS_MAX = 90
"""Disk operations within which the power goes."""


@dataclass
class Cuts:
    """How often the power was cut, and what was under way then."""

    count: int = 0
    under_way: Counter[str] = field(default_factory=Counter)


class Life(Story):
    """Random work between two power cuts, and what each restart may show of it."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world)
        self.rng = random.Random(f"{seed} of the steps")
        self.under_way = ""
        """What the clients and administrators wait for."""
        self.trimmable: dict[int, set[Tag]] = defaultdict(set)
        """By topic: what a restart may have trimmed."""
        self.marks = 0
        self.pin_chance = 0.4 if seed % 2 else 0.0
        """Without it segments die as a whole, and their files become new ones."""
        self.pinning: list[Tag] = []
        """What was sent to :data:`PINNING` and may be there, in order."""

    async def step(self, fact: str, value: Any, work: Any) -> Any:
        self.under_way = doing(fact, value)
        self.note_trimmable()
        try:
            return await super().step(fact, value, work)
        finally:
            self.under_way = ""
            self.note_trimmable()

    async def whole(self) -> None:
        with contextlib.suppress(PowerIsOffError):
            for _ in range(STEPS_MAX):
                await self.something()
                await asyncio.sleep(self.rng.choice((0, 0, 0.01, 0.3, 1.2)))

    async def something(self) -> None:
        """One thing that a client or an administrator does."""
        if self.rng.random() < self.pin_chance:
            await self.pin()
        topic_is_there = bool(self.number())
        subscription_is_there = self.allowed[f"s of {self.number()}"] != {None}
        dice = self.rng.random()
        if not topic_is_there or dice < 0.35:
            await self.publish(self.rng.randint(2, 12))
        elif dice < 0.48:
            await self.change_policy()
        elif dice < 0.56:
            await self.admin("topic", None, lambda f: f.delete_topic(TOPIC, force=True))
        elif not subscription_is_there:
            self.marks += 1
            await self.subscription(self.marks)
        elif dice < 0.9:
            await self.acknowledge(self.rng.randint(1, 12))
        else:
            await self.end_subscription()

    async def change_policy(self) -> None:
        value = self.rng.choice((None, KEPT))
        await self.change(
            "retention", value, lambda c: c.plan_namespace_policies(POLICIES, retention=value)
        )

    async def pin(self) -> None:
        """Send a small message that stays."""

        async def prepare() -> Any:
            topic = self.world.broker.registry.get(PINNING)
            client = await self.world.connect()
            if topic is None or "keeps" not in topic.subscriptions:
                await (await client.subscribe(PINNING.full, "keeps")).close()
            return await client.producer(PINNING.full)

        producer = await self.step("pinning", None, prepare)
        if producer is None:
            return
        tag = (0, next(self.tags))
        self.pinning.append(tag)
        receipt = await self.step("sent", None, lambda: producer.send(b"#%d-%d#" % tag))
        if isinstance(receipt, Position):
            self.receipts[tag] = receipt

    # -- what may be trimmed ---------------------------------------------------------------

    def note_trimmable(self) -> None:
        """Note what the broker may trim from now on.

        With retention in force it keeps everything. Otherwise it may trim what the subscription
        acknowledged, and everything while there is none.
        """
        if self.allowed["retention"] == {KEPT}:
            return
        for number in self.numbers:
            marks = self.allowed[f"s of {number}"]
            if None in marks:
                self.trimmable[number] |= set(self.sent[number])
            for mark in marks - {None}:
                self.trimmable[number] |= self.ack_asked[number, mark]

    def check(self) -> None:
        broker = self.world.broker
        errors = space_errors(broker.log._state)
        assert not errors, errors
        super().check()
        self.found("retention", broker.catalog.namespace_policies(POLICIES).retention)
        self.check_pinning()

    def check_pinning(self) -> None:
        """Each message that had a receipt is there, once and under its id."""
        topic = self.world.broker.registry.get(PINNING)
        held = [] if topic is None else list(self.read(topic))
        assert [tag for tag in self.pinning if tag in set(held)] == held
        assert {tag for tag in self.pinning if tag in self.receipts} <= set(held)
        self.pinning = held
        if topic is not None:
            for ordinal, tag in enumerate(held):
                position = topic.log.position(ordinal)
                assert self.receipts.setdefault(tag, position) == position

    def check_topic(self, topic: Topic, number: int) -> None:
        held = list(self.read(topic))
        sent = self.sent[number]
        trimmed = sent[: sent.index(held[0])] if held else sent
        assert set(trimmed) <= self.trimmable[number] | (set() if held else set(self.lost(number)))
        assert [tag for tag in sent if tag in set(held)] == held  # in order, once
        must = {tag for tag in sent if tag in self.receipts} - set(trimmed)
        assert must <= set(held)
        first = topic.log.first
        for ordinal, tag in enumerate(held, first):
            position = topic.log.position(ordinal)
            assert self.receipts.setdefault(tag, position) == position
        assert len({self.receipts[tag] for tag in held}) == len(held)
        self.sent[number] = held
        subscription = topic.subscriptions.get(SUBSCRIPTION)
        mark = None if subscription is None else int(subscription.properties["mark"])
        self.found(f"s of {number}", mark)
        if subscription is None or mark is None:
            return
        acked = {tag for at, tag in enumerate(held, first) if subscription.acks.is_acked(at)}
        here = set(held)
        assert self.ack_answered[number, mark] & here <= acked <= self.ack_asked[number, mark]
        self.ack_answered[number, mark] = acked

    def lost(self, number: int) -> list[Tag]:
        """What was sent and got no receipt."""
        return [tag for tag in self.sent[number] if tag not in self.receipts]

    def read(self, topic: Topic) -> Iterator[Tag]:
        log: CommitLog = self.world.broker.log
        at = topic.log.first
        while at < topic.log.end:
            for _, _, body in log.read(log.locate(topic.log, at, 99, 1 << 20)):
                yield tag_of(body)
                at += 1


def live(seed: int, cuts_count: int) -> Cuts:
    """Cut one machine's power so many times and check what each start shows.

    Raises AssertionError if a promise was broken; the text says how to play it again.
    """
    cuts = Cuts()
    try:
        with World(seed, ledger=LEDGER, settings=SETTINGS) as world:
            life, rng = Life(world, seed), random.Random(f"{seed} of the cuts")
            world.run(world.start())
            for _ in range(cuts_count):
                one_life(world, life, rng, cuts)
    except BaseException as error:
        replay = f"./dev test faults -- -k f02 --simulation-seeds {seed}:1"
        text = f"seed {seed}, cut {cuts.count}: {error!r}; again: {replay}"
        raise AssertionError(text) from error
    return cuts


def one_life(world: World, life: Life, rng: random.Random, cuts: Cuts) -> None:
    """Work until the power goes, start again, which may take several tries, and check."""
    machine = Machine(world)
    if rng.random() < 0.25:
        world.store.crash_at(world.store.commits + rng.randrange(2), keep=rng.random() < 0.5)
    machine.cut_operation = rng.randrange(OPERATIONS_MAX)
    seen: list[str] = []
    cut = machine.cut

    def noted_cut() -> None:
        if not machine.off.done():
            seen.extend(under_way(world, life))
        cut()

    machine.cut = noted_cut  # type: ignore[method-assign]
    life.stopped = False
    playing = world.loop.create_task(life.whole())
    world.run(first_of(playing, machine.off))
    life.stopped = True
    machine.crash(rng.randrange(1 << 30))
    world.run(playing)
    cuts.count += 1
    cuts.under_way.update(seen)
    start(world, rng, cuts)
    life.check()


def doing(fact: str, value: Any) -> str:
    """What a client or an administrator waits for while a fact gets a value; empty if nothing is
    stored for it."""
    if fact == "retention":
        return "policy change"
    if fact == "topic":
        return "topic creation" if value is not None else "topic deletion"
    if fact.startswith("s of "):
        return "subscription creation" if value is not None else "subscription deletion"
    return {"sent": "publishing", "acked": "acknowledging"}.get(fact, "")


def under_way(world: World, life: Life) -> Iterator[str]:
    """What the broker does at this instant."""
    log = world.broker.log
    if life.under_way:
        yield life.under_way
    job = log._maintenance._job
    if job is not None:
        yield f"job {job.name}"
    if log.active_segment() in log._writer._reused:
        yield "an old file"
    if log._state.held:
        yield "rewriting"
    batch = log._staging._in_flight
    if batch is not None and batch.trims:
        yield "trimming"


def start(world: World, rng: random.Random, cuts: Cuts) -> None:
    """Start the broker; now and then the power goes during a start."""
    while rng.random() < 0.15:
        machine = Machine(world, cut_operation=rng.randrange(12))
        with contextlib.suppress(HeadgateError):
            world.run(world.start())
        happened = machine.off.done()
        machine.crash(rng.randrange(1 << 30))
        if happened:
            cuts.count += 1
            cuts.under_way["a start"] += 1
    world.run(world.start())
