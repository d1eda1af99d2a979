"""The record files of a folder, and the new ones among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.record_files.folder import (
    RecordFilesTask,
    file_name,
    record_folders,
    record_tasks,
)
from headgate.pipeline.timed_folders import TimedFolder

T = 1_763_719_200_000


def folder(*times_ms: int) -> TimedFolder:
    return TimedFolder("prod", "/records/prod", times_ms, ())


def test_each_cluster_has_a_folder(tmp_path: Path) -> None:
    for name in (f"prod/{T}.records", f"prod/.{T + 9}.records", f"test/{T + 1}.records", "x/y"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [(each.label, each.times_ms) for each in record_folders(str(tmp_path))] == [
        ("prod", (T,)),
        ("test", (T + 1,)),
    ]


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no records: .*one folder for each cluster"):
        record_folders(str(tmp_path))


def test_files_that_a_table_lacks_are_shared_out_in_order() -> None:
    times = [T + 60_000 * n for n in range(7)]
    upto = {"bronze_events": times[3], "bronze_samples": times[1]}
    first, second = record_tasks(folder(*times), upto, 2)
    assert [*first.times_ms, *second.times_ms] == times[2:]
    assert first.upto_ms == upto
    assert RecordFilesTask.from_json(second.to_json()).times_ms == list(second.times_ms)
    assert record_tasks(folder(*times), {"bronze_samples": times[-1]}, 2) == []
    (whole,) = record_tasks(folder(*times), {"bronze_samples": None}, 1)
    assert list(whole.times_ms) == times


def test_a_name_is_the_windows_end() -> None:
    assert file_name(T) == "1763719200000.records"
