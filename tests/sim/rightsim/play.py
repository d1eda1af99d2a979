"""Plays a role that changes as much as it can until its right ends, and longer."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from headgate.wire.codes import CommandType
from tests.sim.rightsim.stage import OTHER, ROLE, SUPER, Stage
from tests.sim.rightsim.verbs import VERBS, Part, Verb
from tests.sim.rightsim.wild_role import WildRole
from tests.sim.rightsim.witness import Held, changes, held

SERVED: Final = (CommandType.SUCCESS, CommandType.PRODUCER_SUCCESS,
                 CommandType.PARTITIONED_METADATA_RESPONSE)  # fmt: skip
BURSTS_MIN, BURSTS_MAX = 4, 12
BURSTS: Final = (2, 10, 30)
"""Commands and requests at once."""
STORM: Final = 250
"""Commands or requests of a few kinds at once, right before the verb."""
PAUSES_S: Final = (0.0005, 0.002, 0.008)
"""Between bursts."""
ENDED_S: Final = 1.0
"""Within this time the connections of a revoked token end."""
STEPS_ENDED: Final = 25
BEGUN_S: Final = 0.03
"""Time in which what had begun is completed: one change of the metadata and the disk."""
STEPS_BEGUN: Final = 8
AFTER_S: Final = 40.0
"""Then so much time passes: more than a broker waits for a client that answers no PING."""
BEGUN_MAX: Final = 1
"""Changes of one subscription, and of one schema, that had begun when the right ended."""


@dataclass
class Played:
    """What happened."""

    verb: Verb
    commands_count: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    answers: Counter[CommandType] = field(default_factory=Counter)
    at_end: Held | None = None

    @property
    def served_count(self) -> int:
        """Commands that were carried out, and requests."""
        return sum(self.answers[kind] for kind in SERVED) + self.statuses[204]

    @property
    def refused_count(self) -> int:
        """Those that were refused, for whatever reason."""
        over_http = sum(count for status, count in self.statuses.items() if status >= 400)
        return self.answers[CommandType.ERROR] + over_http


def play(seed: int) -> Played:
    """Play one seed.

    Raises:
        AssertionError: something of what the right allowed happened later than it may.
    """
    played = Played(VERBS[seed % len(VERBS)])
    with Stage(seed) as stage:
        stage.run(_play(stage, random.Random(f"rights {seed}"), played))
    return played


async def _play(stage: Stage, chance: random.Random, played: Played) -> None:
    verb = played.verb
    await stage.furnish(*((ROLE, OTHER) if verb.is_admin else ("admin", ROLE)))
    role = WildRole(stage, chance, verb)
    await role.begin()
    for _ in range(chance.randrange(BURSTS_MIN, BURSTS_MAX)):
        await _burst(role, chance)
    role.storm(STORM)
    ending = stage.loop.create_task(
        stage.ask_as(stage.session(SUPER), verb.method, verb.path, verb.body)
    )
    while not ending.done():
        await _burst(role, chance)
    assert ending.result().status in (200, 204), ending.result().body
    broker, returned_s = stage.broker, stage.now_s
    if verb.ends_connections:
        while role.is_connected:
            assert stage.now_s < returned_s + ENDED_S, verb.name
            await _burst(role, chance, ENDED_S / STEPS_ENDED)
            if chance.random() < 1 / STEPS_ENDED:
                role.storm(STORM)
    in_force = held(broker, verb)
    for _ in range(STEPS_BEGUN):
        await _burst(role, chance, BEGUN_S / STEPS_BEGUN)
    ended, answers = held(broker, verb), role.answers
    await _burst(role, chance)
    await asyncio.sleep(AFTER_S)
    played.at_end = held(broker, verb)
    played.commands_count, played.statuses = role.commands_count, role.statuses
    played.answers = role.answers
    assert not role.asked
    assert not in_force.connected, (verb.name, in_force.connected)
    _check_begun(in_force, ended, verb)
    # Nobody connects, and nothing changes any more.
    assert ended == played.at_end, (verb.name, *changes(ended, played.at_end))
    if verb.lost.issuperset((Part.SUBSCRIPTIONS, Part.PUBLISHING)):
        delivered_count = played.answers[CommandType.MESSAGE] - answers[CommandType.MESSAGE]
        assert not delivered_count, verb.name


async def _burst(role: WildRole, chance: random.Random, pause_s: float | None = None) -> None:
    for _ in range(chance.choice(BURSTS)):
        role.act()
    await asyncio.sleep(chance.choice(PAUSES_S) if pause_s is None else pause_s)


def _check_begun(before: Held, after: Held, verb: Verb) -> None:
    """Only what had begun was completed."""
    for key in before.subscriptions.keys() & after.subscriptions.keys():
        resets_count = after.subscriptions[key][0] - before.subscriptions[key][0]
        assert resets_count <= BEGUN_MAX, (verb.name, key)
    for topic, numbers in after.publishing.items():
        for was, now in zip(before.publishing[topic], numbers, strict=True):
            assert now <= was + BEGUN_MAX, (verb.name, topic)
    if not verb.is_admin:  # there a few requests have begun
        assert after.topics == before.topics, (verb.name, *changes(before, after))
