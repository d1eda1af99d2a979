"""Spark's Python daemon, whose workers begin with the pipeline's modules.

Spark starts it by the setting ``spark.python.daemon.module``. A worker of Spark's own daemon
imports these modules itself, which takes 0.9 s of CPU. After each task it searches them for
garbage, which takes 35 ms. A refresh of all tables has dozens of tasks, most of them shorter.
"""

from __future__ import annotations

import gc
from typing import Final

import pandas  # noqa: F401 - pyarrow imports it at the first array
import pyarrow.dataset  # noqa: F401 - tasks read files in S3 with it
from pyspark import daemon

import headgate.pipeline.store.delta_writer  # noqa: F401

MODULES_MIN: Final = 10_000
"""More objects than that after a collection are modules that a task imported."""


class Collector:
    """Stands for :mod:`gc` in Spark's daemon."""

    @staticmethod
    def collect() -> None:
        """Collect the garbage of a task. Later calls do not search modules that it imported."""
        gc.collect()
        if len(gc.get_objects()) > MODULES_MIN:
            gc.freeze()


def run() -> None:
    """Start workers for Spark until Spark closes the standard input."""
    gc.freeze()
    daemon.gc = Collector
    daemon.manager()


if __name__ == "__main__":
    run()
