"""Requests to every route of the admin API that follow its description, break it, or play tricks.

schemathesis makes the cases from the OpenAPI document; everything follows from one seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode

MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)

KNOWN = {
    "domain": ("persistent", "non-persistent"),
    "tenant": ("public", "wild"),
    "namespace": ("default", "empty"),
    "topic": ("orders", "split", "split-partition-1", "new"),
    "subscription": ("s", "new"),
    "cluster": ("standalone",),
    # It limits no one: a test goes on to publish.
    "name": ("maxPendingPublishRequestsPerConnection", "noSuchSetting"),
    "ledger": ("0", "1", "2", "-1"),
    "entry": ("0", "3", "99", "-1"),
}
"""Values of a path's parameters that mean something to the broker under test."""

NUMBERS = ("1", "0", "-1")
"""Values of all other parameters."""

TRICKS = (
    "..", ".", "...", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%5c..%5cx", "%2f", "%2F%2F",
    "a%2fb", "%00", "a%00b", "%", "%zz", "%c0%ae%c0%ae", "%ff%fe", "%0d%0aX-Evil:%201", "%0a",
    "%1b[2J", "x" * 60_000, "%F0%9F%98%80" * 2_000, "e%CC%81", "%e2%80%ae", "%20", "+", "*", "~",
    "-1", "0", "9" * 5_000, "1e9", "NaN", "persistent:%2f%2fpublic%2fdefault%2forders",
    "orders-partition-1", "orders-partition-99999999999999999999", "orders-partition--1",
    "partitions", "stats", "subscription", "null", "true", "{topic}", "%7Btopic%7D", "", "a;b=c",
)  # fmt: skip
"""Values for one segment of a path."""


@dataclass(frozen=True)
class Wild:
    """One request."""

    method: str
    path: str
    """Percent-encoded, with its query."""
    body: bytes
    template: str
    """The path of its route."""
    is_trick: bool = False
    """Whether the path may be that of another route."""


def requests(
    document: Mapping[str, Any],
    number: int,
    each: int,
    known: Mapping[str, Sequence[str]] = KNOWN,
) -> list[Wild]:
    """``each`` requests for every operation and mode of schemathesis, in a mixed order. ``known``
    values of parameters are in most of their paths."""
    chance = random.Random(number)
    made = []
    for operation in operations(document):
        # Text in a path is never of the wrong type: without more there is nothing to negate.
        negates = operation.query or operation.body
        for mode in MODES if negates else MODES[:1]:
            made += [
                _request(case, chance, known) for case in _cases(operation, mode, number, each)
            ]
    chance.shuffle(made)
    return made


def tricks(document: Mapping[str, Any], number: int) -> Iterator[Wild]:
    """Each route with each trick in the place of one of its parameters."""
    chance = random.Random(number)
    for operation in operations(document):
        names = [parameter.name for parameter in operation.path_parameters]
        for trick in TRICKS if names else ():
            values = {name: chance.choice(KNOWN.get(name, NUMBERS)) for name in names}
            values[chance.choice(names)] = trick
            path = operation.path
            for name, value in values.items():
                path = path.replace(f"{{{name}}}", value)
            yield Wild(operation.method.upper(), path, b"", operation.path, is_trick=True)


def operations(document: Mapping[str, Any]) -> list[Any]:
    """Every operation of an OpenAPI document."""
    schema = schemathesis.openapi.from_dict(dict(document))
    return [found.ok() for found in schema.get_all_operations()]


def _cases(operation: Any, mode: GenerationMode, number: int, each: int) -> list[Any]:
    found: list[Any] = []

    @seed(number)
    @settings(
        max_examples=each,
        phases=[Phase.generate],
        derandomize=False,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def collect(case: Any) -> None:
        found.append(case)

    collect()
    return found


def _request(case: Any, chance: random.Random, known: Mapping[str, Sequence[str]]) -> Wild:
    path = case.operation.path
    for name, value in (case.path_parameters or {}).items():
        text = chance.choice(known.get(name, NUMBERS))
        if chance.random() > 0.85:
            text = quote(str(value), safe="%")
        path = path.replace(f"{{{name}}}", text)
    query = urlencode(
        {_plain(name): _plain(value) for name, value in (case.query or {}).items()},
        errors="replace",
    )
    return Wild(
        case.method.upper(),
        f"{path}?{query}" if query else path,
        _encoded(case.body),
        case.operation.path,
    )


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _encoded(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    if type(body).__name__ == "NotSet":
        return b""
    return json.dumps(body, default=str).encode("utf-8", "replace")
