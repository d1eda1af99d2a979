"""Check that a folder of tables has rows of one source: telemetry records or scrapes.

Records come from topics or files, and each names its stream, so both may fill one folder.
"""

from __future__ import annotations

from headgate.base.errors import InputError
from headgate.pipeline.scrapes.rows import SOURCE_PREFIX
from headgate.pipeline.store.delta_log import open_table, table_files
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES


def check_single_source(root: str, *, is_about_scrapes: bool) -> None:
    """Check that existing tables under ``root`` were filled from the source of this run.

    Rows from both sources would count a broker twice and could not be separated. One file shows the
    source, because every run checks it.

    Raises:
        InputError: they are from the other source, or of another layout version.
        DeltaError, OSError: they cannot be read.
    """
    store = store_of(root)
    if not store.is_table(BRONZE_SAMPLES.name):
        return
    files = table_files(open_table(root, BRONZE_SAMPLES))
    batches = [file.path for file in files if file.partition["kind"] == BATCH_KIND]
    for rows in store.columns(BRONZE_SAMPLES.name, batches[:1], ["source"]):
        have_scrapes = any(
            str(source).startswith(SOURCE_PREFIX) for source in rows.column(0).to_pylist()
        )
        if have_scrapes != is_about_scrapes:
            have, other = "telemetry records", "scrapes"
            if have_scrapes:
                have, other = other, have
            raise InputError(
                f"folder {root} was filled from {have}; {other} would count everything twice "
                "there: choose another folder (--out)"
            )
