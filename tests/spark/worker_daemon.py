"""Spark's Python daemon, whose workers do not search imported modules for garbage after each task.

Spark starts it by the setting ``spark.python.daemon.module``. Its own daemon collects all garbage
after each task of a worker. With the modules of the pipeline that takes 35 ms, more than most tasks
of a test, and one refresh of all tables has dozens of tasks.
"""

from __future__ import annotations

import gc
from typing import Final

from pyspark import daemon

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
    daemon.gc = Collector  # type: ignore[assignment]
    daemon.manager()
