"""What a target has: the alerts that are open there, and those whose end it has not seen.

The state is stored before an alert is sent. So after a kill the stored state has at least what the
target has, and the next run ends what is over. A state that is lost costs no alert: the next run
sends all open ones again, which Alertmanager takes for the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headgate.base.errors import InputError
from headgate.pipeline.alerts.alert import identity

FOLDER: Final = "_alerts"
"""The folder of the states, in the tables' folder or in that of ``--work``."""

STATE_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class SentAlert:
    """An alert as a target has it, or is about to."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_ns: int
    ends_ns: int | None
    """None: it is open."""
    seen_ns: int
    """Until when it was seen to last."""
    found_ns: int
    """When it was found last, by the clock of this machine."""
    keeps_ns: int
    delivered_ns: int | None
    """When the target accepted it last; None: it did not."""
    section: str = ""

    @property
    def identity(self) -> str:
        """The identity of its labels."""
        return identity(self.labels)


@dataclass(frozen=True, slots=True)
class TargetState:
    """All alerts of one target."""

    open: Mapping[str, SentAlert] = field(default_factory=dict)
    """By identity."""
    ended: tuple[SentAlert, ...] = ()
    """Whose end the target has not accepted yet."""


class AlertsHeldError(InputError):
    """Another process sends alerts of these tables to the same target."""


class StateFile:
    """The stored state of one target. One process at a time has it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> tuple[TargetState, str]:
        """The state, and a sentence if it is lost; a first run has neither."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return TargetState(), ""
        except (OSError, UnicodeDecodeError) as error:
            return TargetState(), self._lost(str(error))
        try:
            return _from_document(json.loads(text)), ""
        except (ValueError, KeyError, TypeError, AttributeError):
            return TargetState(), self._lost("its content is damaged or of another release")

    def _lost(self, reason: str) -> str:
        return (
            f"The state {self._path} cannot be read ({reason}): all open alerts are sent again, "
            "and ends of earlier alerts may be missing."
        )

    def save(self, state: TargetState) -> None:
        """Replace the stored state in one step.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
        hidden = self._path.with_suffix(".new")
        try:
            # A new file: others may write to the folder, and have put a link there.
            hidden.unlink(missing_ok=True)
            descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(_document(state), file)
                file.flush()
                os.fsync(file.fileno())
            hidden.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                hidden.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def state_file(folder: str, root: str, url: str, shown: str) -> Iterator[StateFile]:
    """The state of one target, held until the block ends.

    ``root``: the tables. ``shown``: the target in messages.

    Raises:
        AlertsHeldError: another process has it.
        InputError: the folder cannot be used.
    """
    name = hashlib.sha256(f"{root}\n{url}".encode()).hexdigest()[:16]
    path = Path(folder, FOLDER, f"{name}.json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_suffix(".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InputError(f"folder {path.parent} cannot be used: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise AlertsHeldError(
                f"another headgate pipeline alerts (process {holder}) sends alerts of {root} to "
                f"{shown} now"
            ) from error
        with contextlib.suppress(OSError):  # only a text; the disk may be full
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield StateFile(path)
    finally:
        os.close(descriptor)


def _document(state: TargetState) -> dict[str, Any]:
    return {
        "version": STATE_VERSION,
        "open": [_entry(alert) for alert in state.open.values()],
        "ended": [_entry(alert) for alert in state.ended],
    }


def _entry(alert: SentAlert) -> dict[str, Any]:
    return {name: getattr(alert, name) for name in SentAlert.__slots__}


def _from_document(document: Any) -> TargetState:
    if document["version"] != STATE_VERSION:
        raise ValueError(f"version {document['version']}")
    alerts = [SentAlert(**entry) for entry in document["open"]]
    return TargetState(
        {alert.identity: alert for alert in alerts},
        tuple(SentAlert(**entry) for entry in document["ended"]),
    )
