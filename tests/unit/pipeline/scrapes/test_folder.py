"""The scrapes of a folder, and the new ones among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.scrapes.folder import (
    GAP_MS_MAX,
    BrokerFolder,
    ScrapeTask,
    bad_lines_name,
    broker_folders,
    file_name,
    scrape_gaps,
    scrape_tasks,
)

T = 1_763_719_200_000


def broker(*times_ms: int, wrong: tuple[str, ...] = ()) -> BrokerFolder:
    return BrokerFolder("b", "/scrapes/b", times_ms, wrong)


def test_brokers_are_folders_or_the_folder_itself(tmp_path: Path) -> None:
    for name in (
        f"{T + 5}.prom", f"{T}.prom", "notes.txt", f".{T + 9}.prom", "b1/17.prom", f"b1/{T}.prom",
        "b2/readme", ".hidden/x", f"{T}.prom.gz", "9999999999999.prom",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    own, other = broker_folders(str(tmp_path))
    assert (own.label, own.times_ms) == (tmp_path.name, (T, T + 5))
    assert own.wrong_names == (f"{T}.prom.gz", "9999999999999.prom", "notes.txt")
    assert (other.label, other.times_ms, other.wrong_names) == ("b1", (T,), ("17.prom",))


def test_an_invalid_folder_of_scrapes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        broker_folders(str(tmp_path / "none"))
    (tmp_path / "x.prom").touch()
    with pytest.raises(InputError, match=r"holds no scrapes: store them as <milliseconds"):
        broker_folders(str(tmp_path))
    with pytest.raises(InputError, match="Not a directory"):
        broker_folders(str(tmp_path / "x.prom"))
    same = tmp_path / "b" / "b"
    same.mkdir(parents=True)
    for folder in (same, same.parent):
        (folder / file_name(T)).touch()
    with pytest.raises(InputError, match="both called 'b'"):
        broker_folders(str(same.parent))


def test_new_scrapes_are_shared_out_in_order() -> None:
    steps = [T + 15_000 * step for step in range(12)]
    first, second, third = scrape_tasks(broker(*steps, wrong=("x",)), None, (), 3)
    assert [*first.times_ms, *second.times_ms, *third.times_ms] == steps
    assert (first.earlier_ms, first.refused[0][0]) == ([], "x")
    assert (second.earlier_ms, second.refused) == (steps[:4], ())
    assert third.earlier_ms == [ms for ms in steps[:8] if ms >= steps[8] - GAP_MS_MAX]
    assert ScrapeTask.from_json(second.to_json()).times_ms == list(second.times_ms)


def test_only_new_scrapes_are_read() -> None:
    steps = [T, T + 1_000, T + 2_000, T + 3_000]
    known = {file_name(ms) for ms in steps[:2]}
    (task,) = scrape_tasks(broker(*steps), T + 1_000, known, 1)
    assert (task.times_ms, task.earlier_ms, task.refused) == (steps[2:], steps[:2], [])
    assert scrape_tasks(broker(*steps[:2]), T + 1_000, known, 4) == []
    (task,) = scrape_tasks(broker(*steps), T + 1_000, {*known, file_name(steps[2])}, 1)
    assert task.times_ms == steps[3:]
    (task,) = scrape_tasks(broker(*steps), T + 1_000, {*known, bad_lines_name(steps[3])}, 1)
    assert task.quarantined == [bad_lines_name(steps[3])]


def test_a_late_scrape_is_refused_once() -> None:
    late, known = T + 500, {file_name(T), file_name(T + 1_000), "x"}
    (task,) = scrape_tasks(
        broker(T - 9, T, late, T + 1_000, T + 2_000, wrong=("x",)), T + 1_000, known, 2
    )
    assert task.refused == [(file_name(late), "it arrived after a later scrape had been read")]
    (task,) = scrape_tasks(broker(T, late, T + 2_000), T + 1_000, {*known, file_name(late)}, 1)
    assert task.refused == []


def test_a_late_scrape_is_refused_without_newer_ones() -> None:
    known = {file_name(T), file_name(T + 1_000)}
    scrapes = broker(T, T + 500, T + 1_000, wrong=("notes",))
    (task,) = scrape_tasks(scrapes, T + 1_000, known, 4)
    assert (list(task.times_ms), list(task.earlier_ms)) == ([], [T + 1_000])
    assert [name for name, _ in task.refused] == ["notes", file_name(T + 500)]
    assert scrape_tasks(scrapes, T + 1_000, {*known, "notes", file_name(T + 500)}, 4) == []


def test_gaps_are_more_than_two_minutes() -> None:
    assert list(scrape_gaps(broker(T, T + 120_000, T + 240_001))) == [(T + 120_000, T + 240_001)]
