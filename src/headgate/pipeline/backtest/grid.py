"""The grid file, a TOML file with the policies of a backtest.

A ``[[points]]`` table is one policy. A list instead of a value stands for one policy per value, and
several lists for each combination. Absent settings stay as recorded, and an absent controller is
off. One error lists all problems of a file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Final

from headgate.base.errors import InputError
from headgate.base.input_errors import did_you_mean
from headgate.base.units import DOUBLE_EXACT_MAX, INT32_MAX, MS_PER_S, NS_PER_MS, NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Law
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from headgate.pipeline.backtest.policy import RECORDED, Point, Policy, Rates, Recorded
from headgate.pipeline.backtest.replay import INTERVAL_NS_MIN, Resolution

POINTS_MAX: Final = 4_096
_NAME_CHARACTERS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Grid:
    """The policies of a backtest."""

    points: tuple[Point, ...]
    resolution: Resolution = Resolution.CYCLE
    step_ns: int | None = None
    """Length of a step; None: the telemetry's own interval."""


@dataclass(frozen=True, slots=True)
class _Key:
    """The allowed values of one setting."""

    allowed: str
    takes: Callable[[Any], bool]


def _whole(least: int, most: int) -> _Key:
    return _Key(
        f"a whole number from {least} to {most}",
        lambda v: isinstance(v, int) and not isinstance(v, bool) and least <= v <= most,
    )


def _part(*, with_one: bool) -> _Key:
    def takes(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return 0 < value < 1 or (with_one and value == 1)

    return _Key("a number above 0 and " + ("up to 1" if with_one else "below 1"), takes)


def _one_of(*words: str) -> _Key:
    return _Key(" or ".join(words), lambda value: value in words)


_POLICIES: Final = _one_of(*(policy.value for policy in QuotaPolicy))
_INTERVAL_MS: Final = _whole(INTERVAL_NS_MIN // NS_PER_MS, 600_000)
_TABLES: Final[Mapping[str, Mapping[str, _Key]]] = {
    "publish": {
        "messages_per_s": _whole(1, INT32_MAX),
        "bytes_per_s": _whole(1, DOUBLE_EXACT_MAX),
    },
    "adaptive": {
        "law": _one_of(*(law.value for law in Law)),
        "observe_only": _Key("true or false", lambda value: isinstance(value, bool)),
        "interval_ms": _INTERVAL_MS,
        "memory_low": _part(with_one=False),
        "memory_high": _part(with_one=True),
        "backlog_low": _part(with_one=False),
        "backlog_high": _part(with_one=True),
        "min_rate_factor": _part(with_one=True),
        "max_rate_change_factor": _part(with_one=True),
        "drain_set_point": _part(with_one=False),
        "drain_horizon_ms": _whole(100, 600_000),
    },
    "size_quota": {"limit_bytes": _whole(1, DOUBLE_EXACT_MAX), "policy": _POLICIES},
    "time_quota": {"limit_s": _whole(1, INT32_MAX), "policy": _POLICIES},
}
_WORDS: Final = {"publish": ("recorded", "none"), "adaptive": ("off",)} | dict.fromkeys(
    ("size_quota", "time_quota"), ("recorded", "none")
)
"""Words that are allowed instead of a table."""
_NEEDED: Final = {
    "publish": (),
    "adaptive": (),
    "size_quota": ("limit_bytes", "policy"),
    "time_quota": ("limit_s", "policy"),
}
_REPLAY: Final[Mapping[str, _Key]] = {
    "resolution": _one_of(*(resolution.value for resolution in Resolution)),
    "step_s": _whole(1, 3_600),
}


def load_grid(path: str | Path) -> Grid:
    """Read a grid file.

    Raises:
        InputError: the file cannot be read, is no TOML, or has invalid settings; the text lists
            every problem.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"grid file {path} cannot be read: {error.strerror} (--grid)") from error
    except UnicodeDecodeError as error:
        raise InputError(f"grid file {path} is not UTF-8 text (byte {error.start})") from error
    return parse_grid(text, str(path))


def parse_grid(text: str, name: str = "grid") -> Grid:
    """Read a grid from text, as :func:`load_grid` does; errors mention ``name``."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"grid file {name} is no TOML: {error}") from error
    check = _Check()
    grid = check.grid(document)
    if check.faults:
        listed = "\n".join(f"  {fault}" for fault in check.faults)
        count = f"{len(check.faults)} fault{'s' * (len(check.faults) > 1)}"
        raise InputError(f"grid file {name} has {count}:\n{listed}")
    return grid


@dataclass(slots=True)
class _Check:
    """Checks a grid document and collects its faults."""

    faults: list[str] = field(default_factory=list)

    def grid(self, document: dict[str, Any]) -> Grid:
        """The grid; empty if there are faults."""
        self._unknown("", document, ("replay", "points"))
        replay = document.get("replay", {})
        self._table("replay", replay, _REPLAY)
        entries = document.get("points", [])
        if not (
            isinstance(entries, list) and entries and all(isinstance(e, dict) for e in entries)
        ):
            self.faults.append("points: at least one table [[points]] is needed")
            return Grid(())
        count = sum(_count(entry) for entry in entries)
        if count > POINTS_MAX:
            self.faults.append(f"points: there are {count:,}; up to {POINTS_MAX:,} are allowed")
        for number, entry in enumerate(entries):
            self._entry(f"points[{number}]", entry)
        if self.faults:
            return Grid(())
        points: list[Point] = []
        for number, entry in enumerate(entries):
            self._points(f"points[{number}]", entry, points)
        step_s = replay.get("step_s")
        return Grid(
            tuple(points),
            Resolution(replay.get("resolution", Resolution.CYCLE.value)),
            None if step_s is None else step_s * NS_PER_S,
        )

    def _entry(self, where: str, entry: dict[str, Any]) -> None:
        self._unknown(where, entry, ("name", *_TABLES))
        name = entry.get("name", "")
        if not isinstance(name, str) or len(name) > _NAME_CHARACTERS_MAX:
            self.faults.append(
                f"{where}.name is {name!r}; a text of up to {_NAME_CHARACTERS_MAX} characters is "
                "allowed"
            )
        for key, keys in _TABLES.items():
            for value in _listed(entry.get(key, [])):
                inside = f"{where}.{key}"
                if isinstance(value, dict):
                    self._table(inside, value, keys)
                    self.faults += [
                        f"{inside}.{needed} is missing; {keys[needed].allowed} is allowed"
                        for needed in _NEEDED[key]
                        if needed not in value
                    ]
                elif value not in _WORDS[key]:
                    words = " or ".join(_WORDS[key])
                    self.faults.append(f"{inside} is {value!r}; a table, {words} is allowed")

    def _table(self, where: str, table: Any, keys: Mapping[str, _Key]) -> None:
        if not isinstance(table, dict):
            self.faults.append(f"{where} is {table!r}; a table is allowed")
            return
        self._unknown(where, table, tuple(keys))
        for name, key in keys.items():
            if name not in table:
                continue
            values = _listed(table[name])
            if not values:
                self.faults.append(f"{where}.{name} is an empty list; {key.allowed} is allowed")
            self.faults += [
                f"{where}.{name} is {value!r}; {key.allowed} is allowed"
                for value in values
                if not key.takes(value)
            ]

    def _unknown(self, where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        prefix = f"{where}." if where else ""
        self.faults += [
            f"{prefix}{name} is unknown{did_you_mean(name, known) or ';'} {', '.join(known)} are "
            "allowed"
            for name in table
            if name not in known
        ]

    def _points(self, where: str, entry: dict[str, Any], points: list[Point]) -> None:
        name = entry.get("name", "")
        found = list(_combinations({key: entry[key] for key in _TABLES if key in entry}))
        for number, settings in enumerate(found, 1):
            try:
                policy = _policy(settings)
            except InputError as error:
                fault = f"{where}: {error}"
                if fault not in self.faults:
                    self.faults.append(fault)
                continue
            label = f"{name} {number}" if name and len(found) > 1 else name
            adaptive = _or_empty(settings.get("adaptive"))
            points.append(Point(len(points), label, policy, frozenset(adaptive)))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _count(value: Any) -> int:
    """The number of combinations of a value, without creating them."""
    if isinstance(value, dict):
        return prod(_count(inner) for inner in value.values())
    if isinstance(value, list):
        return sum(_count(inner) for inner in value)
    return 1


def _combinations(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for inner in value:
            yield from _combinations(inner)
    elif isinstance(value, dict):
        if not value:
            yield {}
            return
        *rest, last = value
        for head in _combinations({name: value[name] for name in rest}):
            for found in _combinations(value[last]):
                yield head | {last: found}
    else:
        yield value


def _policy(settings: Mapping[str, Any]) -> Policy:
    publish, adaptive = settings.get("publish", "recorded"), settings.get("adaptive", "off")
    return Policy(
        publish=RECORDED if publish == "recorded" else Rates(**_or_empty(publish)),
        adaptive=None if adaptive == "off" else _adaptive(adaptive),
        size_quota=_quota(QuotaType.SIZE, settings.get("size_quota", "recorded")),
        time_quota=_quota(QuotaType.TIME, settings.get("time_quota", "recorded")),
    )


def _or_empty(table: Any) -> dict[str, Any]:
    return table if isinstance(table, dict) else {}


def _adaptive(table: Mapping[str, Any]) -> AdaptiveSettings:
    fields: dict[str, Any] = {}
    for name, value in table.items():
        if name.endswith("_ms"):
            fields[name.removesuffix("_ms") + "_ns"] = value * NS_PER_MS
        else:
            fields[name] = Law(value) if name == "law" else value
    return AdaptiveSettings(**fields)


def _quota(quota_type: QuotaType, table: Any) -> Quota | Recorded | None:
    if not isinstance(table, dict):
        return RECORDED if table == "recorded" else None
    limit = table["limit_bytes"] if quota_type is QuotaType.SIZE else table["limit_s"] * MS_PER_S
    return Quota(quota_type, limit, QuotaPolicy(table["policy"]), "grid")
