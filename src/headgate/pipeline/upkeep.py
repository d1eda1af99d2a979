"""``headgate pipeline compact``: tidy up a folder while nobody writes it. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from deltalake.exceptions import DeltaError

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.options import CompactOptions
from headgate.pipeline.progress import Progress
from headgate.pipeline.roots import resolved_root
from headgate.pipeline.store.folder import folder_lock
from headgate.pipeline.store.maintenance import compact, drop_before, vacuum
from headgate.pipeline.store.scan import existing_tables


def run_compact(options: CompactOptions, err: TextIO) -> None:
    """Drop what is too old, put small files together, delete what is not referred to.

    In this order, so that nothing is rewritten that goes anyway. What was done goes to ``err``.

    Raises:
        InputError: the folder cannot be used, or a time is not allowed.
        PipelineError: a table cannot be read or written.
    """
    root, progress = resolved_root(options.out), Progress(err)
    tables = existing_tables(options.out)
    with folder_lock(root, progress.say), _plain_errors(root):
        if not options.is_dry_run:
            if options.retain_days is not None:
                with progress.stage(f"Dropping rows older than {options.retain_days} days") as s:
                    dropped = drop_before(root, options.retain_days)
                    s.result = f"{dropped:,} files"
            compact(root, tables, progress)
        if options.vacuum:
            verb = "Looking for" if options.is_dry_run else "Deleting"
            with progress.stage(f"{verb} files of no use for {options.vacuum_hours} h") as stage:
                dead = vacuum(root, options.vacuum_hours, options.is_dry_run)
                stage.result = f"{len(dead):,} files"


@contextmanager
def _plain_errors(root: str) -> Iterator[None]:
    """What the disk or a table's log refuses is told in a sentence."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise PipelineError(f"folder {root} cannot be tidied up: {error}") from error
