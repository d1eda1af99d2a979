"""Reports the progress of Spark jobs by their finished tasks."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import SparkSession

from headgate.pipeline.progress import OnProgress

_LOOK_PERIOD_S: Final = 0.5

_GROUP: Final = "spark.jobGroup.id"
"""Local property of a thread: the group of its jobs."""


@contextmanager
def reporting_tasks(spark: SparkSession, on_progress: OnProgress) -> Iterator[None]:
    """Call ``on_progress`` periodically with the finished and all tasks of this thread's jobs.

    Spark plans a stage when the previous one has ended, so the number of all tasks may grow.
    """
    context, group = spark.sparkContext, uuid.uuid4().hex
    tracker, ended = context.statusTracker(), threading.Event()

    def report() -> None:
        while not ended.wait(_LOOK_PERIOD_S):
            done, total = tasks_of(tracker, group)
            if total:
                on_progress(done, total)

    watcher = threading.Thread(target=report, name="tasks", daemon=True)
    context.setLocalProperty(_GROUP, group)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        context.setLocalProperty(_GROUP, None)  # None removes the property


def tasks_of(tracker: Any, group: str) -> tuple[int, int]:
    """Finished tasks of a group's jobs, and all tasks of the stages that have begun.

    ``tracker`` is a :class:`pyspark.StatusTracker`. A stage whose output exists already never
    begins.
    """
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    ids = {stage for job in jobs if job is not None for stage in job.stageIds}
    stages = [stage for stage in map(tracker.getStageInfo, sorted(ids)) if stage is not None]
    begun = [stage for stage in stages if stage.numActiveTasks or stage.numCompletedTasks]
    return sum(s.numCompletedTasks for s in begun), sum(s.numTasks for s in begun)
