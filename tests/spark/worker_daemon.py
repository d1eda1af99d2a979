"""Spark's Python daemon, whose workers begin with the pipeline's modules and do not search them.

Spark starts it by the setting ``spark.python.daemon.module``. Workers of its own daemon each import
the modules, which takes 0.9 s of CPU, and collect all garbage after each task. With the modules
that takes 35 ms, more than most tasks of a test, and one refresh of all tables has dozens of tasks.
"""

from __future__ import annotations

import gc
from typing import Final

import pandas  # noqa: F401 - pyarrow imports it at the first array
from pyspark import daemon

import headgate.pipeline.store.delta_writer  # noqa: F401

_MODULES_MIN: Final = 10_000
"""More objects than that after a collection are modules that a task imported."""


class Collector:
    """Stands for :mod:`gc` in Spark's daemon."""

    @staticmethod
    def collect() -> None:
        """Collect the garbage of a task; modules that it imported are not searched again."""
        gc.collect()
        if len(gc.get_objects()) > _MODULES_MIN:
            gc.freeze()


if __name__ == "__main__":
    gc.freeze()
    daemon.gc = Collector  # type: ignore[assignment]
    daemon.manager()
