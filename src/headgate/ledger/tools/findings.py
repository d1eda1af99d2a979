"""What a check of a log reports: findings, each with its place and its cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class CostKind(StrEnum):
    """How a finding harms a topic."""

    LOST = "lost"
    """These messages are unreadable or missing."""
    MAY_BE_LOST = "may be lost"
    """Messages from here on may have been there; nothing stored later shows that none were."""
    ACKNOWLEDGEMENTS = "acknowledgements"
    """Acknowledgements of the subscription may have been there."""
    SUBSCRIPTION = "subscription"
    """A subscription of any topic may have been created there."""
    STATE = "state"
    """Positions and subscriptions of all topics."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one finding costs one topic."""

    kind: CostKind
    topic: int = 0
    """The topic's number; 0 for all topics."""
    first: int = 0
    """The first ordinal that is lost."""
    stop: int = 0
    """One past the last lost ordinal; 0 if that is unknown."""
    first_id: str = ""
    """Message id (``ledger:entry``) of the first lost message; empty if it is unknown."""
    last_id: str = ""
    subscription: str = ""

    @property
    def entries(self) -> int:
        """Lost entries; 0 if their number is unknown."""
        return max(self.stop - self.first, 0)


@dataclass(frozen=True, slots=True)
class Mend:
    """A change of one file that repairs a damaged place without losing anything more."""

    file: str
    what: str
    """What the change does, as an imperative."""
    content: bytes | None
    """The bytes to write; None to move the file away."""
    offset: int | None = None
    """Where to write them; None to replace or create the file."""
    to_end: bool = False
    """The file ends behind them. It is then replaced in one step, holes included."""
    new_name: str = ""
    """The name that the file gets, instead of all the above; no file has it."""


@dataclass(slots=True)
class Finding:
    """One damaged place of a log, or something that an operator may want to know."""

    file: str
    """The name of the file in the log's directory."""
    offset: int
    size_bytes: int
    """Damaged bytes; 0 for a missing file."""
    what: str
    is_damage: bool = True
    """False for a note: a state that a crash or an earlier decision leaves."""
    refuses_start: bool = False
    """A broker does not start with it."""
    costs: list[Cost] = field(default_factory=list)
    mends: list[Mend] = field(default_factory=list)
    """Changes that repair it; empty if nothing can."""


@dataclass(slots=True)
class Report:
    """The result of a check."""

    findings: list[Finding] = field(default_factory=list)
    files: int = 0
    read_bytes: int = 0
    batches: int = 0
    entries: int = 0
    """Sound entries found, those of deleted topics included."""
    topics: frozenset[int] = frozenset()
    """Numbers of the topics that the checkpoint has, or that have records behind it."""

    @property
    def damage(self) -> list[Finding]:
        """The findings that are damage."""
        return [finding for finding in self.findings if finding.is_damage]

    def add(
        self, file: str, offset: int, size_bytes: int, what: str, *, is_damage: bool = True
    ) -> Finding:
        """Add a finding without costs."""
        finding = Finding(file, offset, size_bytes, what, is_damage)
        self.findings.append(finding)
        return finding
