"""The process that copies segments: ``python -m headgate.app.segment_copying.copy_worker``.

It does what the broker asks, a step at a time, and ends when the broker closes its end of the pipe,
or is no more.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

from headgate.app.segment_copying.messages import (
    BEGIN,
    READY,
    Failed,
    Finished,
    Moved,
    NewIndex,
    Step,
    receive,
    send,
)
from headgate.fs import Fs, OsFs
from headgate.fs.api import File
from headgate.ledger.format.records import segment_name
from headgate.ledger.index.block_cache import BlockCache
from headgate.ledger.index.stored_run import segment_of_file
from headgate.ledger.space.segment_copy import CopyTask, SegmentCopy

_NICE: Final = 5
"""Where the CPUs are busy, the broker comes first."""
_OOM_SCORE: Final = 1000
"""Where memory runs out, the kernel ends this process rather than the broker."""


class OldFiles:
    """Reads the files that are copied, for their index."""

    def __init__(self, fs: Fs, directory: str) -> None:
        self._fs = fs
        self._directory = directory
        self._open: dict[int, File] = {}

    def read(self, file: int, offset: int, size: int) -> bytes:
        """Bytes of a file; fewer only at its end. Raises :class:`OSError`."""
        segment = segment_of_file(file)
        if segment not in self._open:
            self._open[segment] = self._fs.open(f"{self._directory}/{segment_name(segment)}")
        return self._open[segment].read_at(offset, size)

    def close(self) -> None:
        """Close all files."""
        for file in self._open.values():
            file.close()
        self._open.clear()


class CopyWorker:
    """Answers the broker's messages."""

    def __init__(
        self,
        fs: Fs,
        requests: int,
        answers: int,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``requests`` and ``answers`` are descriptors to read from and to write to."""
        self._fs = fs
        self._clock_s = clock_s
        self._sleep = sleep
        self._requests = requests
        self._answers = answers

    def run(self) -> None:
        """Copy what is asked for. Returns when the broker's end is closed."""
        with contextlib.suppress(EOFError, BrokenPipeError):
            send(self._answers, READY)
            while True:
                self._copy(receive(self._requests))

    def _copy(self, task: CopyTask) -> None:
        files = OldFiles(self._fs, task.directory)
        copy = SegmentCopy(self._fs, task, BlockCache(files, 0))
        counts = []
        while (parts := receive(self._requests)) != BEGIN:
            copy.parts += parts
            counts.append(len(parts))
        steps = copy.steps()
        try:
            if not self._advance(copy, steps):
                return
        finally:
            steps.close()
            files.close()
        begin = 0
        for count in counts:
            parts = copy.parts[begin : begin + count]
            begin += count
            found = []
            for part in parts:
                run = copy.stored.get(part.number)
                found.append(NewIndex(part.offsets, None if run is None else run.alone()))
            send(self._answers, found)

    def _advance(self, copy: SegmentCopy, steps: Generator[int]) -> bool:
        """Answer each request for a step; returns whether the copy is complete."""
        while True:
            step: Step = receive(self._requests)
            try:
                moved_bytes = self._move(steps, step)
            except Exception as error:
                copy.close()
                send(self._answers, Failed.of(error))
                return False
            if moved_bytes is None:
                send(self._answers, Finished(copy.data_end, copy.file_bytes))
                return True
            send(self._answers, Moved(moved_bytes, copy.written_bytes))

    def _move(self, steps: Generator[int], step: Step) -> int | None:
        """Move some pieces; returns their bytes, or None if the copy was complete before. After the
        last piece the broker makes the pause."""
        begun_s = self._clock_s()
        moved_bytes = 0
        for at in range(step.pieces_max):
            if at and step.bytes_per_s:
                due_s = begun_s + moved_bytes / step.bytes_per_s
                self._sleep(max(due_s - self._clock_s(), 0.0))
            piece_bytes = next(steps, None)
            if piece_bytes is None:
                return moved_bytes if at else None
            moved_bytes += piece_bytes
        return moved_bytes


def main() -> None:
    """Run the process: requests come from the standard input, answers go to the output."""
    # A signal from the terminal or the service manager goes to the broker, too, which closes the
    # pipe when it ends.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_NICE)
        # It never takes the CPU from the broker's threads only because it has slept.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))
    CopyWorker(OsFs(), 0, 1).run()


if __name__ == "__main__":
    main()
