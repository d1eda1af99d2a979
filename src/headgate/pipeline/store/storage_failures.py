"""Failures of the tables' storage, each in one sentence: the disk, S3, a table's log, a file.

No Spark here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from deltalake.exceptions import DeltaError

from headgate.pipeline.failures import PipelineError, joined_causes

STORAGE_FAILURES: Final = (DeltaError, OSError, pa.ArrowException)
"""What the libraries of the storage raise; pyarrow raises its own errors for damaged files."""


def storage_reason(error: Exception) -> str:
    """Why the storage failed, in one line, and what to do where that is known."""
    text = joined_causes(str(error)).partition("\n")[0] or "no reason given"
    if isinstance(error, FileNotFoundError):
        return (
            f"a file is gone ({text}): a vacuum deletes what was replaced, so repeat the command; "
            "if it fails again, the file is lost"
        )
    if isinstance(error, pa.ArrowException):
        return (
            f"a file is damaged ({text}): headgate pipeline run --recompute DAY writes the day of "
            "a derived table anew"
        )
    return text


@contextmanager
def plain_storage_failures(what: str) -> Iterator[None]:
    """Turn a failure of the storage into one sentence that begins with ``what``.

    Raises:
        PipelineError: with that sentence.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # who read the output left; that is no failure
    except STORAGE_FAILURES as error:
        raise PipelineError(f"{what}: {storage_reason(error)}") from error
