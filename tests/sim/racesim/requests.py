"""Requests to every route of the admin API, about what a scene holds.

The routes come from the API's own description, so that a new one is asked without a change here.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from headgate.admin.openapi import describe
from headgate.admin.table import ROUTES
from headgate.base.positions import Position

DOCUMENT: Final[dict[str, Any]] = json.loads(msgspec.json.encode(describe(ROUTES, "1")))

SETTINGS: Final = {
    "maxPendingPublishRequestsPerConnection": ("1000", "3"),
    "brokerDeleteInactiveTopicsEnabled": ("true", "false"),
    "maxUnackedMessagesPerConsumer": ("50000", "4"),
}
"""Dynamic settings that may change without an end to what is tested, each with its values."""

NUMBERS: Final = (-1, 0, 1, 2, 5, 20, 1_000)
WORDS: Final = ("a", "b", "team", "")
DEFINITIONS: Final = (
    {"type": "STRING", "schema": "", "properties": {}},
    {"type": "BYTES", "schema": "", "properties": {}},
    {
        "type": "AVRO",
        "schema": json.dumps(
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}
        ),
        "properties": {},
    },
)
POLICY_WEIGHT: Final = 1
OTHER_WEIGHT: Final = 4
ENTRIES_WEIGHT: Final = 16
FOCUS_WEIGHT: Final = 400
ENTRIES: Final = ("topic.messages", "topic.trim", "topic.truncate", "topic.unload", "topic.stats",
                  "topic.backlog-size", "topic.terminate", "subscription.")  # fmt: skip
"""Operations on stored entries and on cursors, which look entries up, move or remove them."""


@dataclass(frozen=True)
class Request:
    """One request."""

    method: str
    path: str
    """Percent-encoded, with its query."""
    body: bytes
    template: str
    """The path of its route."""


@dataclass(frozen=True)
class Subjects:
    """What requests are about."""

    namespaces: tuple[tuple[str, str], ...]
    topics: tuple[str, ...]
    subscriptions: tuple[str, ...]
    position_in: Callable[[str], Position]
    """A position that a topic, or another one, has or had; the topic by its full name."""
    bundle: Callable[[], str]
    now_ms: Callable[[], int]


class Requests:
    """Draws requests. ``takes`` says which routes, by method, path and operation."""

    def __init__(
        self,
        chance: random.Random,
        subjects: Subjects,
        takes: Callable[[str, str, str], bool] = lambda *_: True,
    ) -> None:
        self._chance = chance
        self._subjects = subjects
        self._operations: list[tuple[str, str, Mapping[str, Any]]] = []
        weights: list[int] = []
        for path, methods in DOCUMENT["paths"].items():
            for method, described in methods.items():
                operation = described["x-headgate-operation"]
                if takes(method.upper(), path, operation):
                    self._operations.append((method.upper(), path, described))
                    weights.append(_weight(operation))
        self._usual = self._weights = weights

    @property
    def count(self) -> int:
        """Operations that are drawn from."""
        return len(self._operations)

    def focus(self, count: int) -> None:
        """Draw ``count`` operations much more often from now on, in the place of earlier ones."""
        self._weights = list(self._usual)
        for at in self._chance.choices(range(len(self._usual)), self._usual, k=count):
            self._weights[at] += FOCUS_WEIGHT

    def draw(self) -> Request:
        """The next request."""
        method, path, described = self._chance.choices(self._operations, self._weights)[0]
        return self._made(method, path, described)

    def about(self, path: str, method: str) -> Request:
        """A request to that route."""
        return self._made(method, path, DOCUMENT["paths"][path][method.lower()])

    def _made(self, method: str, path: str, described: Mapping[str, Any]) -> Request:
        chance = self._chance
        tenant, namespace = chance.choice(self._subjects.namespaces)
        topic = chance.choice(self._subjects.topics)
        position = self._subjects.position_in(f"persistent://{tenant}/{namespace}/{topic}")
        setting = chance.choice([*SETTINGS])
        values: dict[str, Callable[[], object]] = {
            "tenant": lambda: tenant,
            "namespace": lambda: namespace,
            "topic": lambda: topic,
            "domain": lambda: "persistent",
            "subscription": lambda: chance.choice(self._subjects.subscriptions),
            "cluster": lambda: "standalone",
            "bundle": self._subjects.bundle,
            "ledger": lambda: position.ledger_id,
            "entry": lambda: position.entry_id,
            "timestamp": lambda: self._subjects.now_ms() - chance.choice((0, 10, 500, 90_000)),
            "name": lambda: setting,
            "value": lambda: (
                chance.choice(SETTINGS[setting])
                if "configuration" in path
                else chance.choice(WORDS)
            ),
            "key": lambda: chance.choice(WORDS),
            "role": lambda: chance.choice(WORDS),
        }

        def filled(match: re.Match[str]) -> str:
            value = values.get(match[1], lambda: chance.choice(NUMBERS))()
            return quote(str(value), safe="") or "x"

        target = re.sub(r"{(\w+)}", filled, path)
        query = {
            each["name"]: _text(self._value(each["schema"], each["name"]))
            for each in described.get("parameters", ())
            if each["in"] == "query" and chance.random() < 0.6
        }
        body = b""
        if "requestBody" in described:
            schema = described["requestBody"]["content"]["application/json"]["schema"]
            about_schema = path.startswith("/admin/v2/schemas/")
            value = chance.choice(DEFINITIONS) if about_schema else self._value(schema, "")
            if isinstance(value, dict) and "ledgerId" in value and chance.random() < 0.9:
                value = {"ledgerId": position.ledger_id, "entryId": position.entry_id,
                         "isExcluded": chance.random() < 0.5}  # fmt: skip
            body = json.dumps(value).encode()
        return Request(method, f"{target}?{urlencode(query)}" if query else target, body, path)

    def _value(self, schema: Mapping[str, Any], name: str) -> Any:
        """A value of a schema."""
        chance = self._chance
        if "$ref" in schema:
            found = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            return self._value(found, name)
        if "anyOf" in schema:
            return self._value(chance.choice(schema["anyOf"]), name)
        if "enum" in schema:
            return chance.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema)
        if kind == "array":
            items = schema.get("items", {"type": "string"})
            return [self._value(items, name) for _ in range(chance.randrange(3))]
        if kind == "integer" or kind == "number":
            return self._number(schema, name)
        if kind == "boolean":
            return chance.random() < 0.5
        if kind == "null":
            return None
        return chance.choice(("earliest", "latest", *WORDS))

    def _object(self, schema: Mapping[str, Any]) -> Any:
        chance = self._chance
        properties: Mapping[str, Any] = schema.get("properties", {})
        if not properties:
            return {chance.choice(WORDS): chance.choice(WORDS) for _ in range(chance.randrange(3))}
        return {
            key: self._value(each, key) for key, each in properties.items() if chance.random() < 0.7
        }

    def _number(self, schema: Mapping[str, Any], name: str) -> int:
        is_small = not name or "artitions" in name  # a topic of many takes long
        number = self._chance.choice((1, 2, 3, 4) if is_small else NUMBERS)
        return int(min(max(number, schema.get("minimum", -1)), schema.get("maximum", 1 << 40)))


def _weight(operation: str) -> int:
    if ".policy." in operation:
        return POLICY_WEIGHT
    return ENTRIES_WEIGHT if operation.startswith(ENTRIES) else OTHER_WEIGHT


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
