"""Random damage of directories that were in use for long: verify says what a start then loses.

The directories hold segments that were rewritten, segments in files of earlier ones with old bytes
behind their end, segments with holes, and a prepared file that nothing was written into yet. What
verify says is lost must be what a start does not find; then the same after a repair.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError
from headgate.fs import MemFs
from headgate.ledger import CommitLog, LedgerSettings
from headgate.ledger.format.records import SEGMENT_HEADER_BYTES, segment_of_name
from headgate.ledger.recovery.segment_load import read_first_head
from headgate.ledger.tools.findings import CostKind, Report
from headgate.ledger.tools.repair import repair_log
from headgate.ledger.tools.verify import verify_log
from tests.sim.test_ledger_damage import is_log_file, left, lived, spoil
from tests.sim.test_ledger_power_cuts import SETTINGS, TOPICS
from tests.unit.ledger.support import DIRECTORY, append, bodies_of, commit, content
from tests.unit.ledger.tools.test_verify import unreadable

ASIDE = "/aside"
LONG = LedgerSettings(
    segment_bytes=65536,
    extent_bytes=4096,
    checkpoint_records=200,
    checkpoint_bytes=1 << 18,
    hole_bytes_min=4096,
    ledger_entries_max=20,
    ledger_age_ms_min=0,
)
_PAGE_BYTES = 4096
FOUND = (832, 1087, 2179)
"""Seeds that found a difference once: a damaged end of a footer, and damaged blocks of an index
together with records that they list."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@dataclass(frozen=True)
class Directory:
    """A log on a disk after a power cut."""

    fs: MemFs
    settings: LedgerSettings
    topics: tuple[int, ...]

    def open(self, fs: MemFs) -> CommitLog:
        return CommitLog.open(
            fs, DIRECTORY, topic_numbers=self.topics, entropy=random.Random(1).randbytes,
            settings=self.settings,
        )  # fmt: skip

    def names(self) -> dict[int, str]:
        return {number: str(number) for number in self.topics}


def mixed(seed: int) -> Directory:
    """Small and large messages of three topics, released at different times."""
    rng, fs = random.Random(f"mixed {seed}"), MemFs()
    directory = Directory(fs, LONG, (1, 2, 3))
    log = directory.open(fs)
    log.create_cursor(1, "reader", AckSet(), {})
    for turn in range(90):
        append(log, 1, rng.randbytes(rng.randrange(9_000)), received_ms=1000 + turn)
        append(log, 2, *[rng.randbytes(40)] * rng.randrange(1, 5), received_ms=1000 + turn)
        if turn % 7 == 0:
            append(log, 3, b"seldom %d" % turn, received_ms=1000 + turn)
        if turn % 10 == 9:
            for number, keep in ((1, 9), (2, 60)):
                topic = log.topic(number)
                log.roll_ledger(topic, 1000 + turn)
                log.stage_trim(topic, max(topic.first, topic.end - keep))
            commit(log)
        log.run_maintenance()
        if turn == 60:
            log.run_rewriting()
            log.run_maintenance()
    log._writer.flush_position.sync()
    for name in fs.list_directory(DIRECTORY):
        fs.open(f"{DIRECTORY}/{name}", writable=True).sync_data()  # the holes, too
    return replace(directory, fs=fs.crash_clone())


@cache
def directories() -> list[Directory]:
    short = [left(lived(seed, 34 + seed)) for seed in range(4)]
    return [
        *(Directory(fs, SETTINGS, TOPICS) for fs in short),
        *(mixed(seed) for seed in range(3)),
    ]


def kinds_of(directory: Directory) -> set[str]:
    """What kinds of files a directory has."""
    found: set[str] = set()
    fs = directory.fs
    for name in fs.list_directory(DIRECTORY):
        segment = segment_of_name(name)
        if name.endswith(".old"):
            found.add("old file")
        if segment is None:
            continue
        data = content(fs, f"{DIRECTORY}/{name}")
        head = read_first_head(fs, DIRECTORY, segment)
        if head is None:
            found.add("prepared")
        elif head.is_rewritten:
            found.add("rewritten")
        if data[8] == 4:
            found.add("recycled")
        if bytes(2 * _PAGE_BYTES) in data.rstrip(b"\0"):
            found.add("holes")
    return found


def test_the_directories_have_all_kinds_of_files() -> None:
    found = set().union(*map(kinds_of, directories()))
    assert {"prepared", "rewritten", "recycled", "holes"} <= found
    for directory in directories():
        assert verify_log(directory.fs, DIRECTORY, directory.names()).damage == []


def check_exactly(report: Report, log: CommitLog, numbers: Collection[int]) -> None:
    """What verify says is lost is what a start finds lost, no more and no less."""
    costs = [cost for finding in report.damage for cost in finding.costs]
    every = {CostKind.SUBSCRIPTION, CostKind.STATE} & {cost.kind for cost in costs}
    suspects = {cost.topic for cost in costs if cost.kind is CostKind.MAY_BE_LOST}
    for number in numbers:
        topic = log.topic(number)
        said = {
            ordinal
            for cost in costs
            if cost.kind is CostKind.LOST and cost.topic == number
            for ordinal in range(cost.first, cost.stop)
        }
        lost = unreadable(log, number) | {
            ordinal for low, high in topic.lost for ordinal in range(max(low, topic.first), high)
        }
        if topic.damage:
            assert said or number in suspects or every, (number, topic.damage)
        else:
            assert number not in suspects, number
        if CostKind.STATE in every:
            assert lost <= said | set(range(topic.first)) or topic.damage
        else:
            assert said & set(range(topic.first, topic.end)) == lost, (number, topic.damage)
            assert all(ordinal < topic.end for ordinal in said) or number in suspects
    said_cursors = {c.subscription for c in costs if c.kind is CostKind.ACKNOWLEDGEMENTS}
    damaged = {cursor.name for cursor in log.cursors() if cursor.damage}
    assert damaged <= said_cursors or every
    assert said_cursors <= damaged or every


def damage_at_random(rng: random.Random, fs: MemFs) -> str:
    names = [name for name in fs.list_directory(DIRECTORY) if is_log_file(name)]
    name = rng.choice(names)
    path = f"{DIRECTORY}/{name}"
    used = len(content(fs, path).rstrip(b"\0"))
    kind = rng.choice(["as before", "gone", "page", "footer", "swapped"])
    if kind == "as before" or used <= SEGMENT_HEADER_BYTES or segment_of_name(name) is None:
        return spoil(fs, name, rng)
    if kind == "gone":
        fs.remove(path)
        fs.sync_directory(DIRECTORY)
    elif kind == "swapped":
        other = f"{DIRECTORY}/{rng.choice([n for n in names if segment_of_name(n) is not None])}"
        mine, others = content(fs, path), content(fs, other)
        for place, data in ((path, others), (other, mine)):
            file = fs.create(place)
            file.write_at(0, [data])
            file.sync_data()
        fs.sync_directory(DIRECTORY)
        return f"{path} and {other} swapped"
    else:
        at = rng.randrange(0, used, _PAGE_BYTES)
        size = _PAGE_BYTES
        if kind == "footer":
            at = rng.randrange(max(used - 600, SEGMENT_HEADER_BYTES), used)
            size = rng.randrange(1, 40)
        file = fs.open(path, writable=True)
        file.write_at(at, [bytes(size) if kind == "page" else rng.randbytes(size)])
        file.sync_data()
    return f"{kind} of {name}"


@pytest.mark.parametrize("seed", [*range(200), *FOUND])
def test_what_verify_says_is_what_a_start_loses(seed: int) -> None:
    rng = random.Random(f"long {seed}")
    directory = directories()[seed % len(directories())]
    whole = directory.open(directory.fs.crash_clone())
    messages = {
        number: dict(enumerate(bodies_of(whole, number), whole.topic(number).first))
        for number in directory.topics
    }
    fs = directory.fs.crash_clone()
    done = [damage_at_random(rng, fs) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    report = verify_log(fs, DIRECTORY, directory.names())
    try:
        log = directory.open(fs.crash_clone())
    except CorruptionError:
        assert any(finding.refuses_start for finding in report.damage), done
    else:
        assert not any(finding.refuses_start for finding in report.damage), done
        check_exactly(report, log, directory.topics)
    _, after = repair_log(fs, DIRECTORY, ASIDE, directory.names())
    assert not any(finding.refuses_start for finding in after.damage), done
    log = directory.open(fs.crash_clone())
    check_exactly(after, log, directory.topics)
    for number, bodies in messages.items():
        topic, lost = log.topic(number), unreadable(log, number)
        for ordinal in (set(range(topic.first, topic.end)) & set(bodies)) - lost:
            ((*_, body),) = log.read(log.locate(topic, ordinal, 1, 1))
            assert bytes(body) == bodies[ordinal]
