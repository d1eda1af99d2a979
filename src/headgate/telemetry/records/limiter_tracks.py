"""The tracks of all limiters of one broker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from headgate.base.chunks import Chunks
from headgate.engine.engine import Engine
from headgate.flow.limits.precedence import ABOVE_PUBLISH_RATE, EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension
from headgate.record.fields import Kind
from headgate.telemetry.records.limiters import Gate, LimiterTrack, Waiter
from headgate.telemetry.records.names import PLAIN, Names
from headgate.telemetry.records.row_buffer import RowBuffer
from headgate.telemetry.records.subjects import Instant, Row


class LimiterTracks:
    """One track for each budget in force, from the setting of its limit to its removal."""

    def __init__(
        self,
        engine: Engine,
        rows: RowBuffer,
        sent_in_window: Callable[[Waiter, Dimension], int],
        names: Names = PLAIN,
    ) -> None:
        """``sent_in_window`` gives what a waiter was granted in the window that ends now."""
        self._engine = engine
        self._rows = rows
        self._sent_in_window = sent_in_window
        self._names = names
        self._tracks: dict[tuple[Gate, Dimension], LimiterTrack] = {}
        self._order: Chunks[LimiterTrack] = Chunks()
        self._window = 0
        """The number of the window: amounts that waited in an earlier one count no more."""

    def __iter__(self) -> Iterator[LimiterTrack]:
        """The tracks that there are now. The caller may let others run between two of them."""
        for tracks in self._order.walk():
            yield from tracks

    def follow(self, gate: Gate, level: str, subject: str, incarnation: int, at_ns: int) -> None:
        """Begin and end tracks as the budgets of a gate changed, at an instant (wall clock)."""
        in_force = {budget.dimension for budget in gate.budgets}
        self.end(gate, at_ns, keep=in_force)
        for budget in gate.budgets:
            if (gate, budget.dimension) not in self._tracks:
                track = LimiterTrack(
                    gate,
                    budget,
                    level,
                    subject,
                    incarnation=incarnation,
                    since_ns=at_ns,
                    now_ns=self._engine.now_ns,
                    names=self._names,
                )
                self._tracks[gate, budget.dimension] = track
                track.chunk = self._order.add(track)

    def end(self, gate: Gate, at_ns: int, keep: Collection[Dimension] = ()) -> None:
        """End the tracks of a gate, except those of the dimensions to ``keep``."""
        for dimension in Dimension:
            if dimension not in keep and (gate, dimension) in self._tracks:
                track = self._tracks.pop((gate, dimension))
                self._order.remove(track, track.chunk)
                self._rows.add_last(Kind.LIMITER, self._row(track, Instant.end(at_ns)))

    def set_source(self, gate: Gate, effective: EffectiveLimit) -> None:
        """Store where the limit of a gate is set."""
        moves = ABOVE_PUBLISH_RATE if effective.limit and effective.limit.relative else ""
        for dimension in Dimension:
            track = self._tracks.get((gate, dimension))
            if track is not None:
                track.source = self._names.limit_source(effective.source_of(dimension)) + moves

    def begin_window(self) -> None:
        """Count waiting amounts from 0."""
        self._window += 1

    def add_waiting(self, gate: Gate, amount: Callable[[Dimension], int]) -> None:
        """Add what one waiter has waiting at a gate, by dimension."""
        for budget in gate.budgets:
            track = self._tracks.get((gate, budget.dimension))
            if track is not None:
                self._begin_window(track)
                track.waiting += amount(budget.dimension)

    def add_row(self, track: LimiterTrack, at: Instant) -> None:
        """Add a track's row of the window, if anything changed."""
        self._rows.add(Kind.LIMITER, self._row(track, at))

    def _row(self, track: LimiterTrack, at: Instant) -> Row | None:
        self._begin_window(track)
        return track.row(at, self._engine.now_ns, self._sent_in_window)

    def _begin_window(self, track: LimiterTrack) -> None:
        """Forget what waited in an earlier window. Not all tracks at once: there may be 100,000."""
        if track.window != self._window:
            track.window, track.waiting = self._window, 0
