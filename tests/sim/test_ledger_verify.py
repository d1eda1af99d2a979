"""Verify agrees with a start about seeded damage anywhere in a log that was in use."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import pytest

from headgate.base.errors import CorruptionError
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME
from headgate.ledger.format.records import segment_of_name
from headgate.ledger.tools.verify import verify_log
from tests.sim.test_ledger_damage import is_log_file, left, lived, open_log, spoil
from tests.sim.test_ledger_power_cuts import DIRECTORY, TOPICS
from tests.unit.ledger.tools.test_verify import check_costs

NAMES = {number: str(number) for number in TOPICS}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", range(12))
def test_a_log_after_a_power_cut_is_sound(seed: int) -> None:
    fs = left(lived(seed, 30 + seed))
    assert verify_log(fs, DIRECTORY, NAMES).damage == []
    open_log(fs).close()
    assert verify_log(fs, DIRECTORY, NAMES).damage == []


@pytest.mark.parametrize("seed", [*range(20), 40, 92, 221])
def test_verify_names_what_a_start_loses(seed: int) -> None:
    whole = left(lived(seed, 34 + seed))
    rng = random.Random(f"verify {seed}")
    names = [name for name in whole.list_directory(DIRECTORY) if is_log_file(name)]
    before = len(verify_log(whole, DIRECTORY, NAMES).findings)
    for _ in range(60):
        fs = whole.crash_clone()
        name = rng.choice(names)
        done = spoil(fs, name, rng)
        if name == FLUSH_POSITION_NAME:
            continue
        report = verify_log(fs, DIRECTORY, NAMES)
        assert report.damage or len(report.findings) >= before, done
        try:
            log = open_log(fs)
        except CorruptionError:
            assert any(finding.refuses_start for finding in report.damage), done
            continue
        is_segment = segment_of_name(name) is not None
        if is_segment and not done.startswith("bits"):
            check_costs(report, log, TOPICS)
        damaged = {number for number in TOPICS if log.topic(number).damage}
        costs = [cost for finding in report.damage for cost in finding.costs]
        assert damaged <= {cost.topic for cost in costs} or any(c.topic == 0 for c in costs), done
