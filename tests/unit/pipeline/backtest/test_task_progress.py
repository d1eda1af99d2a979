"""Finished tasks are counted, of the stages that have begun."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

from headgate.pipeline.backtest.task_progress import tasks_of


def stage(tasks: int, active: int, completed: int) -> SimpleNamespace:
    return SimpleNamespace(numTasks=tasks, numActiveTasks=active, numCompletedTasks=completed)


class Tracker:
    """Stands for Spark's tracker: two jobs, one after the other, that share a stage."""

    stages: ClassVar = {
        1: stage(4, 0, 4),  # done
        2: stage(8, 2, 3),  # runs
        3: stage(5, 0, 0),  # waits for it
        4: stage(4, 0, 0),  # what stage 1 has done, under another number
        5: None,  # forgotten
    }

    def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802
        assert group == "g"
        return [10, 11, 12]

    def getJobInfo(self, job: int) -> SimpleNamespace | None:  # noqa: N802
        ids = {10: [1, 2], 11: [4, 2, 3, 5]}.get(job)
        return None if ids is None else SimpleNamespace(stageIds=ids)

    def getStageInfo(self, number: int) -> SimpleNamespace | None:  # noqa: N802
        return self.stages[number]


def test_finished_tasks_of_started_stages_are_counted() -> None:
    assert tasks_of(Tracker(), "g") == (7, 12)
