"""A role that sends commands and requests without waiting for an answer, over several connections
and over HTTP at once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from headgate.base.positions import EARLIEST
from headgate.base.schema_types import SchemaType
from headgate.broker.authentication import Session
from headgate.testing import SimClient
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ProducerAccessMode, SubscriptionType
from headgate.wire.messages import BaseCommand, Schema
from tests.sim.racesim.wild_client import with_rollback
from tests.sim.rightsim.stage import NAMESPACE, ROLE, TOPICS, Stage
from tests.sim.rightsim.verbs import NAMES, Verb
from tests.unit.broker.test_rights_rollout import avro
from tests.unit.facade.test_rights_that_end import posted

CLIENTS: Final = 4
NEW_TOPICS: Final = 400
FOCUS_WEIGHT: Final = 10
STORM_KINDS: Final = (1, 2, 3)
Asked = tuple[str, str, object]
AGO_S: Final = (0, 1, 3, 6, 9)
"""How far back a rollback or a seek goes."""
SHARED_TYPE: Final = SubscriptionType.SHARED
KINDS: Final = (SHARED_TYPE, SHARED_TYPE, SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)


class QuietClient(SimClient):
    """A connection that only counts what arrives. A silent one answers no PING."""

    counts: Counter[CommandType]
    is_silent = False

    def _receive(self, command: BaseCommand, body: bytes | None) -> None:
        kind = CommandType(command.type)
        if self.connected is None:
            super()._receive(command, body)
        elif kind == CommandType.PING and not self.is_silent:
            self.write(frames.pong())
        else:
            self.counts[kind] += 1


class WildRole:
    """The role whose right ends."""

    def __init__(self, stage: Stage, chance: random.Random, verb: Verb) -> None:
        self._stage = stage
        self._chance = chance
        self._verb = verb
        self._session: Session
        self._clients: list[QuietClient] = []
        self._consumers: dict[QuietClient, list[int]] = {}
        """Ids of consumers that each client asked for."""
        self._number = 100
        """The last number that a command had as its request and client id."""
        self._client: QuietClient
        self._subscription = self._topic = ""
        acts: tuple[Callable[[], None], ...] = (
            *[self._subscribe] * 6, *[self._seek] * 3, self._unsubscribe, self._close_consumer,
            *[self._produce] * 3, *[self._produce_to_new] * 2, *[self._ask_partitions] * 2,
            *[partial(self._request, draw) for draw in self._requests()],
        )  # fmt: skip
        # Much of the same, about the same: so that it stands in long lines.
        self._acts = (*acts, *chance.choices(acts, k=2) * FOCUS_WEIGHT)
        self._topics = (*TOPICS, *[chance.choice(TOPICS)] * 2)
        self._subscriptions = (*NAMES, *[NAMES[0]] * 3)
        self.commands_count = 0
        self.statuses: Counter[int] = Counter()
        """Answers over HTTP."""
        self.asked: set[asyncio.Task[None]] = set()
        """Requests that have no answer yet."""

    @property
    def answers(self) -> Counter[CommandType]:
        """What all connections received."""
        return sum((client.counts for client in self._clients), Counter())

    @property
    def is_connected(self) -> bool:
        """Whether a connection of it is open."""
        return any(client.is_open for client in self._clients)

    async def begin(self) -> None:
        """Connect."""
        stage, behind = self._stage, self._verb.behind
        self._session = stage.session(ROLE, behind)
        for _ in range(CLIENTS):
            client = QuietClient(stage.loop, wall_ms=stage.wall_ms)
            client.counts = Counter()
            await stage.enter(ROLE, behind, client)
            client.is_silent = self._chance.random() < 0.7
            self._clients.append(client)
            self._consumers[client] = []

    def act(self) -> None:
        """Send one command, or one request."""
        chance = self._chance
        self._topic = chance.choice(self._topics)
        self._subscription = chance.choice(self._subscriptions)
        self._do(chance.choice(self._acts))

    def storm(self, count: int) -> None:
        """Send so many of a few kinds at once, about the same: most of them wait in line."""
        chance = self._chance
        acts = chance.choices(self._acts, k=chance.choice(STORM_KINDS))
        self._topic = chance.choice(self._topics)
        self._subscription = chance.choice(self._subscriptions)
        for _ in range(count):
            self._do(chance.choice(acts))

    def _do(self, act: Callable[[], None]) -> None:
        self._client = self._chance.choice(self._clients)
        self._number += 1
        self.commands_count += 1
        act()

    def _write(self, frame: bytes) -> None:
        if self._client.is_open:
            self._client.write(frame)

    # -- commands ----------------------------------------------------------------------------

    def _subscribe(self) -> None:
        chance, number = self._chance, self._number
        is_durable = chance.random() < 0.9
        properties = {"number": str(number)} if is_durable and chance.random() < 0.5 else None
        frame = frames.subscribe(
            number, number, self._topic, self._subscription, kind=chance.choice(KINDS),
            durable=is_durable, start=None if is_durable else EARLIEST, properties=properties,
        )  # fmt: skip
        ago_s = chance.choice(AGO_S)
        self._write(with_rollback(frame, ago_s) if ago_s else frame)
        self._write(frames.flow(number, 3))
        self._consumers[self._client].append(number)

    def _consumer(self) -> int:
        return self._chance.choice(self._consumers[self._client] or [0])

    def _ago_ms(self) -> int:
        return self._stage.wall_ms() - self._chance.choice(AGO_S) * 1_000

    def _seek(self) -> None:
        when_ms = self._ago_ms()
        self._write(frames.seek(self._number, self._consumer(), publish_time_ms=when_ms))

    def _unsubscribe(self) -> None:
        force = self._chance.random() < 0.5
        self._write(frames.unsubscribe(self._number, self._consumer(), force=force))

    def _close_consumer(self) -> None:
        self._write(frames.close_consumer(self._number, self._consumer()))

    def _produce(self) -> None:
        self._produce_to(self._topic)

    def _produce_to_new(self) -> None:
        self._produce_to(self._new_topic())

    def _produce_to(self, topic: str) -> None:
        chance, number = self._chance, self._number
        schema = Schema(name="s", type=SchemaType.AVRO, schema_data=avro(number))
        self._write(
            frames.producer(
                number, number, topic, access_mode=chance.choice([*ProducerAccessMode]),
                schema=schema if chance.random() < 0.5 else None,
            )
        )  # fmt: skip

    def _ask_partitions(self) -> None:
        topic = f"{self._new_topic()}-parts"
        self._write(frames.partitioned_metadata(self._number, topic))

    def _new_topic(self) -> str:
        return f"persistent://{NAMESPACE}/new-{self._chance.randrange(NEW_TOPICS)}"

    # -- requests over HTTP ------------------------------------------------------------------

    def _requests(self) -> list[Callable[[], Asked]]:
        """What draws method, path and body of a request."""
        found: list[Callable[[], Asked]] = [
            lambda: ("PUT", self._of_subscription(), "earliest"),
            lambda: ("DELETE", self._of_subscription("?force=true"), None),
            lambda: ("PUT", self._of_subscription("/properties"), {"number": str(self._number)}),
            lambda: ("POST", self._of_subscription(f"/resetcursor/{self._ago_ms()}"), None),
            lambda: ("POST", self._of_subscription("/skip/1"), None),
            lambda: ("POST", self._of_subscription("/skip_all"), None),
            lambda: ("POST", self._of_subscription("/expireMessages/1"), None),
            lambda: ("POST", f"{_path(self._topic)}/all_subscription/expireMessages/1", None),
        ]
        if self._verb.is_admin:
            found += [
                lambda: ("POST", _schema_path(self._topic), posted(self._number)),
                lambda: ("POST", _schema_path(self._topic), posted(self._number)),
                lambda: ("DELETE", _schema_path(self._topic), None),
                lambda: ("PUT", _path(self._new_topic()), None),
                lambda: ("DELETE", f"{_path(self._new_topic())}?force=true", None),
                lambda: ("PUT", f"{_path(self._new_topic())}-parts/partitions", 2),
                lambda: ("POST", f"{_path(self._new_topic())}-parts/partitions", 4),
                lambda: ("DELETE", f"{_path(self._new_topic())}-parts/partitions?force=true", None),
            ]
        return found

    def _of_subscription(self, rest: str = "") -> str:
        return f"{_path(self._topic)}/subscription/{self._subscription}{rest}"

    def _request(self, draw: Callable[[], Asked]) -> None:
        method, path, body = draw()

        async def ask() -> None:
            answer = await self._stage.ask_as(self._session, method, f"/admin/v2/{path}", body)
            self.statuses[answer.status] += 1

        task = self._stage.loop.create_task(ask())
        self.asked.add(task)
        task.add_done_callback(self.asked.discard)


def _path(topic: str) -> str:
    return topic.replace("://", "/")


def _schema_path(topic: str) -> str:
    return f"schemas/{NAMESPACE}/{topic.rpartition('/')[2]}/schema"
