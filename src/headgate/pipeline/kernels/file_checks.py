"""The results of the checks of one file, as its footer holds them.

They are those of the rows that the file has, so they are as durable as the rows, and a reader of
many files adds them up without the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.base.errors import invariant

FOOTER_KEY: Final = b"headgate.checks"
"""Key of the results in the metadata of a Parquet file."""

_FORM: Final = 1
"""Grows when an earlier release would misread the results."""

KEYS_SAMPLED: Final = 16
"""Hashes of keys that a footer holds: enough to recognize rows that are in two files."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How the rows of a file, or of several, met one expectation."""

    checked: int = 0
    failed: int = 0
    columns: tuple[str, ...] = ()
    """Those that fail."""
    example: Mapping[str, Any] | None = None
    """Of the rows that fail, the key that comes first: the same however rows are divided."""
    first_us: int | None = None
    """Time of the first row that fails, microseconds since the epoch."""
    last_us: int | None = None

    def __add__(self, other: CheckResult) -> CheckResult:
        """The result of the rows of both."""
        firsts = [us for us in (self.first_us, other.first_us) if us is not None]
        lasts = [us for us in (self.last_us, other.last_us) if us is not None]
        return CheckResult(
            self.checked + other.checked,
            self.failed + other.failed,
            tuple(dict.fromkeys((*self.columns, *other.columns))),
            min(
                (each for each in (self.example, other.example) if each is not None),
                key=_order,
                default=None,
            ),
            min(firsts, default=None),
            max(lasts, default=None),
        )


def _order(example: Mapping[str, Any]) -> list[tuple[bool, Any]]:
    """The place of a key among others: by its columns, null last."""
    return [(value is None, value) for value in example.values()]


@dataclass(slots=True)
class FileChecks:
    """All results of one file."""

    rows: int = 0
    results: dict[str, CheckResult] = field(default_factory=dict)
    """By the name of the expectation."""
    totals: dict[str, int] = field(default_factory=dict)
    """Sums of the columns that agree with those of other tables."""
    keys: tuple[int, ...] = ()
    """The :data:`KEYS_SAMPLED` least hashes of the keys."""

    def encoded(self) -> bytes:
        """The value for the footer."""
        results = {name: _parts(result) for name, result in self.results.items()}
        value = {
            "form": _FORM,
            "rows": self.rows,
            "results": results,
            "totals": self.totals,
            "keys": [f"{key:x}" for key in self.keys],
        }
        return json.dumps(value, separators=(",", ":")).encode()

    @classmethod
    def decoded(cls, value: bytes) -> FileChecks | None:
        """The results from a footer; None for those of a later release."""
        found = json.loads(value)
        if found.get("form") != _FORM:
            return None
        return cls(
            found["rows"],
            {name: _result(*parts) for name, parts in found["results"].items()},
            found["totals"],
            tuple(int(key, 16) for key in found["keys"]),
        )


def added_up(parts: Iterable[FileChecks]) -> dict[str, CheckResult]:
    """The results of several files, by the name of the expectation."""
    found: dict[str, CheckResult] = {}
    for part in parts:
        for name, result in part.results.items():
            found[name] = found.get(name, CheckResult()) + result
    return found


def _parts(result: CheckResult) -> list[Any]:
    """The inverse of :func:`_result`: a result without failures has two parts."""
    if not result.failed:
        return [result.checked, 0]
    return [
        result.checked,
        result.failed,
        list(result.columns),
        result.example,
        result.first_us,
        result.last_us,
    ]


def _result(checked: int, failed: int, *more: Any) -> CheckResult:
    if not more:
        return CheckResult(checked, failed)
    invariant(len(more) == 4, "a result of failed rows has four more parts")
    columns, example, first_us, last_us = more
    return CheckResult(checked, failed, tuple(columns), example, first_us, last_us)
