"""Repeats a streaming query whose Python process started too late for Spark.

Spark starts a Python process for each streaming source and waits 10 s for its connection; no
setting changes that. On a machine that is busy with other work the process needs longer. The query
may be repeated: it continues from its checkpoint, and each batch is committed once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.errors import PySparkException

STARTS_MAX: Final = 5
"""How often a query is started. By the second start the files of the process are in memory."""

_LATE: Final = "Python worker failed to connect back"
"""What Spark says of such a process."""

LATE_TEXT: Final = (
    "Spark's Python process did not start within 10 s, because this machine is busy; the query "
    "starts again."
)


def repeat_if_late(run_query: Callable[[], None], say: Callable[[str], None]) -> None:
    """Run a query, and again while its Python process started too late.

    ``run_query`` starts it and waits for its end. ``say`` gets a sentence before each repetition.

    Raises:
        PySparkException: the query failed for another reason, or for this one
            :data:`STARTS_MAX` times.
    """
    for left in reversed(range(STARTS_MAX)):
        try:
            run_query()
        except PySparkException as error:
            if not left or _LATE not in str(error):
                raise
            say(LATE_TEXT)
        else:
            return
