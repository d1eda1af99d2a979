"""Patterns of topic names, which clients send.

A pattern is a client's: it must cost the loop little whatever it is. RE2 matches in time that grows
with the name only, and refuses what it cannot match so (look-around, back references). Meaning and
hash are Pulsar's (``TopicList``): a pattern matches the whole name of a topic without
``persistent://`` and without the suffix of a partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import google_crc32c
import re2

from headgate.base.errors import InputError
from headgate.base.names import PARTITION_SUFFIX, NamespaceName
from headgate.base.units import KIB
from headgate.base.work_units import JOB_STEP_UNITS_MAX
from headgate.metadata.catalog import Catalog

MEMORY_BYTES_MAX: Final = 128 * KIB
"""What RE2 may take for one pattern: its program, and the states that it builds while it matches.
"""

TRIAL_BYTES_MAX: Final = 32 * KIB
"""What RE2 may take to find out whether a pattern is too complex: programs that are allowed take 20
KiB. With the memory above RE2 makes 8,000 instructions of fifty characters, and needs 7 ms."""

PROGRAM_STEPS_MAX: Final = 1_000
"""Most instructions of a pattern. Beyond its memory RE2 follows many of them for each character: a
name of 500 characters then takes 0.2 ms."""

NAMES_PER_UNIT: Final = 2
"""Names that are matched with one unit of work by a small pattern."""

SMALL_PROGRAM_STEPS: Final = 64

USUAL_CHARACTERS: Final = 100
"""Characters of a name. If names are longer, fewer are matched without a pause."""

HASHED_PER_UNIT: Final = 256
"""Names that are hashed with one unit of work."""

_SCHEME: Final = "://"


class PatternError(InputError):
    """A pattern that the broker does not evaluate."""


class TopicPattern:
    """A compiled pattern."""

    __slots__ = ("_expression", "names_per_step")

    def __init__(self, text: str) -> None:
        """Compile a pattern as a client sends it, with or without the domain.

        Raises:
            PatternError: RE2 cannot match it, or it is too complex.
        """
        expression = without_domain(text)
        try:
            size = _compiled(expression, TRIAL_BYTES_MAX).programsize
        except re2.error as error:
            why = error.args[0] if error.args else ""
            shown = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
            raise PatternError(
                f"{text[:80]!r} is no pattern of RE2's syntax: {shown[:120]!r}"
            ) from error
        if size > PROGRAM_STEPS_MAX:
            raise PatternError(
                f"{text[:80]!r} compiles to {size} instructions: {PROGRAM_STEPS_MAX} are allowed"
            )
        self._expression = _compiled(expression, MEMORY_BYTES_MAX)
        small = JOB_STEP_UNITS_MAX * NAMES_PER_UNIT
        self.names_per_step = max(small * SMALL_PROGRAM_STEPS // max(size, SMALL_PROGRAM_STEPS), 1)
        """Names that may be matched without a pause, which takes JOB_STEP_UNITS_MAX units."""

    def matches(self, topic: str) -> bool:
        """Whether it matches a topic's full name."""
        return self._expression.fullmatch(base_of(topic)) is not None


def _compiled(expression: str, bytes_max: int) -> re2._Regexp[str]:
    options = re2.Options()
    options.max_mem = bytes_max
    options.log_errors = False
    options.never_capture = True
    return re2.compile(expression, options)


def without_domain(pattern: str) -> str:
    """A pattern without the domain of the names that it matches, as Pulsar's broker cuts it."""
    head, separator, rest = pattern.partition(_SCHEME)
    if not separator:
        return pattern
    prefix = next((start for start in ("\\Q", "^") if head.startswith(start)), "")
    return prefix + rest


def base_of(topic: str) -> str:
    """A topic's full name without its domain, and a partition's without its suffix."""
    name = topic.partition(_SCHEME)[2]
    base, separator, index = name.rpartition(PARTITION_SUFFIX)
    return base if separator and index.isdigit() else name


class TopicsHash:
    """The hash of a list of topics by which a client finds out whether its list is still valid:
    CRC32C of the sorted names with commas between them."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: int | None = None

    def add(self, names: Sequence[str]) -> None:
        """Add the next names, in their order."""
        if not names:
            return
        text = ",".join(names)
        if self._value is None:
            self._value = 0
        else:
            text = "," + text
        self._value = google_crc32c.extend(self._value, text.encode())

    @property
    def text(self) -> str:
        """The hash of what was added, as Pulsar writes it."""
        return (self._value or 0).to_bytes(4, "little").hex()


def matching_names(
    catalog: Catalog,
    namespace: NamespaceName,
    hidden: frozenset[str],
    pattern: TopicPattern | None,
    names_max: int,
) -> Iterator[list[str]]:
    """The topics of a namespace that match, sorted, in pieces of up to ``names_max`` that were
    looked at. What happens to the namespace between two pieces may be missed, or not."""
    after = ""
    while True:
        names = catalog.topics_after(namespace, after, names_max)
        pieces = 1
        if pattern is not None:
            pieces += sum(map(len, names)) // (USUAL_CHARACTERS * names_max)
        step = -(-len(names) // pieces) or 1
        for start in range(0, len(names) or 1, step):
            yield matching(names[start : start + step], hidden, pattern)
        if len(names) < names_max:
            return
        after = names[-1]


def matching(
    names: Iterable[str], hidden: frozenset[str], pattern: TopicPattern | None
) -> list[str]:
    """Those of ``names`` that match and are not hidden. Partitions of one topic that follow each
    other are matched once."""
    found: list[str] = []
    last_base, last_matches = "", False
    for name in names:
        if name in hidden:
            continue
        if pattern is not None:
            base = name.rpartition(PARTITION_SUFFIX)[0] or name
            if base != last_base:
                last_base, last_matches = base, pattern.matches(name)
            if not last_matches:
                continue
        found.append(name)
    return found
