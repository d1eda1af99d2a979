"""The threads of one broker for blocking work."""

from __future__ import annotations

from dataclasses import dataclass, fields

from headgate.storage.lane_watch import LaneWatch
from headgate.storage.lanes import Lane


@dataclass(frozen=True, slots=True)
class Lanes:
    """The threads of a broker for blocking work."""

    commit: Lane
    read: Lane
    metadata: Lane
    upkeep: Lane
    """Runs the maintenance of all logs, so that no commit waits for it."""
    removal: Lane
    """Frees the files of deleted segments, with pauses in which no other lane waits."""
    telemetry: Lane | None = None
    """Commits the telemetry log, if there is one, so that users' commits never wait for it."""

    def watched(self, watch: LaneWatch) -> Lanes:
        """These lanes, watched by ``watch``."""
        lanes = {field.name: getattr(self, field.name) for field in fields(self)}
        return Lanes(**{name: lane and watch.watched(name, lane) for name, lane in lanes.items()})

    def close(self) -> None:
        """Finish what was submitted and end all threads. Blocks."""
        for lane in (
            self.read,
            self.metadata,
            self.removal,
            self.upkeep,
            self.telemetry,
            self.commit,
        ):
            if lane is not None:
                lane.close()
