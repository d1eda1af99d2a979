from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pyspark_pulsar import reader_process
from pyspark_pulsar.attempts import Attempt, AttemptEnd
from pyspark_pulsar.errors import AccessError, PulsarSourceError, ReaderProcessError
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.range_reader import Step
from pyspark_pulsar.reader_process import ReaderProcess, read_in_process
from tests.unit.pyspark_pulsar.fakes import SCHEMA, T, settings, work

ATTEMPT = Attempt(work(earliest(T), Position(3, 1), (3, 2)), settings(), SCHEMA, begin=earliest(T))
BATCH = pa.record_batch([pa.array([b"a", b"b"])], schema=SCHEMA)
STEP = Step(None, Position(3, 0), ())
END = AttemptEnd((), is_complete=True)

PROGRAM = """
import os, pickle, sys
from pyspark_pulsar.reader_pipe import read_frame, write_frame
while True:
    try:
        attempt, _ = read_frame(0)
    except EOFError:
        break
    assert attempt.work.topic.startswith("persistent://")
    exec({what!r})
"""
"""A process that does this at each attempt; ``parts`` are to be sent."""

SEND = "for what, rows in pickle.loads({!r}): write_frame(1, what, rows)"


def process_that(*what: str) -> list[str]:
    return [sys.executable, "-P", "-c", PROGRAM.format(what="\n".join(what))]


def sending(*parts: object) -> str:
    whole = [(part, BATCH if isinstance(part, Step) else None) for part in parts]
    return SEND.format(pickle.dumps(whole))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The command of the processes that are started."""
    words: list[str] = []

    class Started(ReaderProcess):
        def __init__(self) -> None:
            super().__init__(words)

    monkeypatch.setattr(reader_process, "ReaderProcess", Started)
    monkeypatch.setattr(reader_process, "_idle", {})
    yield words
    for process in reader_process._idle.values():
        process.close()


def test_the_process_writes_over_what_it_frees(command: list[str]) -> None:
    """A message may end with memory behind its batch, where one of another topic was."""
    command += process_that(
        "assert os.environ['MALLOC_PERTURB_'] not in ('', '0')", sending(END)
    )  # fmt: skip
    assert list(read_in_process(ATTEMPT)) == [END]


def test_steps_with_rows_arrive_and_the_process_is_kept(command: list[str]) -> None:
    command += process_that(sending(STEP, END))
    step, end = read_in_process(ATTEMPT)
    assert isinstance(step, Step)
    assert (step.batch, step.reached) == (BATCH, Position(3, 0))
    assert end == END
    (kept,) = reader_process._idle.values()
    assert len(list(read_in_process(ATTEMPT))) == 2
    assert list(reader_process._idle.values()) == [kept]


@pytest.mark.parametrize(
    ("how", "ending", "is_by_client"),
    [
        ("os.abort()", "with signal SIGABRT", True),
        ("os.kill(os.getpid(), 11)", "with signal SIGSEGV", True),
        ("os.kill(os.getpid(), 9)", "with signal SIGKILL", False),
        ("os._exit(3)", "with status 3", False),
    ],
)
def test_a_process_that_ends(command: list[str], how: str, ending: str, is_by_client: bool) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"
    command += process_that(limit, sending(STEP), how)
    parts = read_in_process(ATTEMPT)
    assert isinstance(next(parts), Step)
    with pytest.raises(ReaderProcessError, match=f"ended {ending}$") as caught:
        next(parts)
    assert caught.value.is_by_client is is_by_client
    assert reader_process._idle == {}


def test_an_idle_process_that_ended_is_replaced(command: list[str]) -> None:
    command += process_that(sending(END))
    assert list(read_in_process(ATTEMPT)) == [END]
    (kept,) = reader_process._idle.values()
    kept._process.send_signal(signal.SIGTERM)
    kept._process.wait(10)
    with pytest.raises(ReaderProcessError, match="SIGTERM"):
        list(read_in_process(ATTEMPT))
    assert list(read_in_process(ATTEMPT)) == [END]


def test_an_error_of_the_other_side_is_raised_here(command: list[str]) -> None:
    command += process_that(sending(AccessError("refused")))
    with pytest.raises(AccessError, match=r"^refused$"):
        list(read_in_process(ATTEMPT))


def test_a_reading_that_is_given_up_ends_its_process(command: list[str]) -> None:
    command += process_that(sending(STEP), "read_frame(0)")
    parts = read_in_process(ATTEMPT)
    next(parts)
    parts.close()  # type: ignore[attr-defined]
    assert reader_process._idle == {}


def test_a_process_that_cannot_be_started() -> None:
    with pytest.raises(ReaderProcessError, match="No such file") as caught:
        ReaderProcess(["/nowhere/python"])
    assert not caught.value.is_by_client


def test_the_real_program_has_a_bound_on_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few bytes may claim messages of 2 GiB."""
    monkeypatch.setattr(reader_process, "_idle", {})
    process = ReaderProcess()
    with pytest.raises(PulsarSourceError, match="h:1"):
        list(process.read(ATTEMPT))
    bound = resource.prlimit(process._process.pid, resource.RLIMIT_DATA)[0]
    assert bound == 1_024 * 1024 * 1024
    process.close()


def test_the_real_program_finds_its_modules_and_reports_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody listens at the broker's address."""
    monkeypatch.setattr(reader_process, "_idle", {})
    with pytest.raises(Exception, match="h:1") as caught:
        list(read_in_process(ATTEMPT))
    assert type(caught.value).__module__ == "pyspark_pulsar.errors"
    assert not isinstance(caught.value, ReaderProcessError)
    assert os.getpid() not in reader_process._idle
