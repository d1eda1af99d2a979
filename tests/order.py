"""In which order a lane runs its test files, the longest first, and which of them, where each of
its processes has a part of its own."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable
from typing import Final

LONGEST_FIRST: Final = (
    "tests/unit/control/test_adaptive.py",
    "tests/unit/ledger/tools/test_verify.py",
    "tests/unit/ledger/tools/test_repair.py",
    "tests/unit/pipeline/kernels/test_attribution.py",
    "tests/unit/broker/sweeps/test_trimming.py",
    "tests/unit/devkit/test_lane_runs.py",
    "tests/unit/admin/test_untrusted_numbers.py",
    "tests/unit/pipeline/backtest/test_kernel.py",
    "tests/unit/broker/connection/test_connection_mutants.py",
    "tests/unit/base/test_ack_set.py",
    "tests/unit/observe/explain/test_diagnosis.py",
    "tests/unit/devkit/test_soak.py",
    "tests/sim/test_space_bound.py",
    "tests/sim/test_broker_simulation.py",
    "tests/sim/test_lane_errors.py",
    "tests/faults/test_f04_flipped_bytes.py",
    "tests/faults/test_f05_full_disk.py",
    "tests/faults/test_f02_power_cuts.py",
    "tests/faults/test_f01_kill_at_every_step.py",
    "tests/service/test_metadata_and_log.py",
    "tests/service/test_standalone.py",
    "tests/service/test_full_disk.py",
    "tests/service/test_backlog_quotas_kill_nine.py",
    "tests/service/test_kill_nine.py",
    "tests/service/test_memory_spike.py",
    "tests/service/faults/test_f17_few_descriptors.py",
    "tests/service/test_secured_guide.py",
    "tests/service/test_open_telemetry.py",
    "tests/service/test_refused_starts.py",
    "tests/service/test_publish_limits.py",
    "tests/service/test_backlog_quotas.py",
    # Before Spark's session for the tests after them begins.
    "tests/demo/test_spark_job.py",
    "tests/demo/test_demo.py",
    "tests/spark/test_pipeline_store.py",
    "tests/spark/test_cluster.py",
    "tests/spark/test_pipeline_minutes.py",
    "tests/spark/test_pipeline_kills.py",
    "tests/spark/test_labelled_runs.py",
    "tests/spark/test_pipeline_faults.py",
    "tests/spark/test_pipeline_jobs.py",
    "tests/spark/test_scrapes_of_a_broker.py",
    "tests/spark/test_pipeline_pulsar.py",
    "tests/spark/test_pipeline_backtest.py",
    "tests/spark/test_pipeline_quotas.py",
    "tests/spark/test_pipeline_forecast.py",
    "tests/spark/test_pipeline_stream.py",
    "tests/spark/test_pipeline_scrapes.py",
    "tests/spark/test_pipeline_commands.py",
)
"""Files with few tests that take long. xdist takes the number of tests for the length of a file, so
these would come last, and one of them would run alone while the other processes have ended."""


def ordered(files: Iterable[str]) -> list[int]:
    """The order in which to run tests, given the file of each: indexes into ``files``.

    Tests of one file keep their order. Files that :data:`LONGEST_FIRST` does not name follow by the
    number of their tests.
    """
    of = list(files)
    tests = Counter(of)
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    found = sorted(tests, key=lambda name: (rank.get(name, len(rank)), -tests[name]))
    place = {name: at for at, name in enumerate(found)}
    return sorted(range(len(of)), key=lambda index: place[of[index]])


_TOGETHER: Final = ("tests/tidy/",)
"""Folders whose tests share what takes long: the syntax trees of all modules. The last part has
them."""


def part_of(file: str, parts: int) -> int:
    """Which of so many parts of a lane has that test file, from 1 on.

    Every part knows this without the other files. The long files are dealt out in turn.
    """
    if file.startswith(_TOGETHER):
        return parts
    at = LONGEST_FIRST.index(file) if file in LONGEST_FIRST else zlib.crc32(file.encode())
    return at % parts + 1
