"""Only a holder of the lock writes a folder in S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.spark_failures import reason_of
from headgate.pipeline.store.lease import FREE, Lease
from headgate.pipeline.store.lock_tokens import (
    LockLostError,
    check_lock,
    with_lock_token,
    writer_options,
)
from tests.unit.pipeline.store.test_lease import A, B, Shelf

ROOT = "s3://tables/a"


def locked(lease: Lease) -> Shelf:
    lock = Shelf()
    lock.create(lease)
    return lock


def test_the_writer_gets_the_lock_token() -> None:
    assert writer_options(ROOT) == {"root": ROOT}
    with with_lock_token(ROOT, "a"), with_lock_token("s3://tables/b", "b"):
        assert writer_options(ROOT) == {"root": ROOT, "lock": "a"}
        assert writer_options("s3://tables/b") == {"root": "s3://tables/b", "lock": "b"}
        with with_lock_token(ROOT + "/", None), with_lock_token(ROOT + "/", "inner"):
            assert writer_options(ROOT)["lock"] == "inner"
        assert writer_options(ROOT)["lock"] == "a"
    assert writer_options(ROOT) == {"root": ROOT}
    assert writer_options("/tables") == {"root": "/tables"}


def test_a_held_lock_passes_the_check() -> None:
    with with_lock_token(ROOT, A.token):
        check_lock(ROOT, locked(A))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (locked(B), "now held by process 7 on host-b"),
        (locked(FREE), "is free"),
        (Shelf(), "has no lock any more"),
    ],
)
def test_a_lost_lock_names_its_new_holder(found: Shelf, said: str) -> None:
    with with_lock_token(ROOT, A.token), pytest.raises(LockLostError, match=said) as caught:
        check_lock(ROOT, found)
    assert isinstance(caught.value, PipelineError)


def test_a_process_without_the_lock_cannot_write() -> None:
    with pytest.raises(LockLostError, match="is not held by this process"):
        check_lock(ROOT, locked(A))


def test_each_folder_has_a_separate_lock(tmp_path: Path) -> None:
    check_lock(str(tmp_path))


def test_the_sentence_survives_spark() -> None:
    """The writer's commit fails in another process, and comes back as a page."""
    with with_lock_token(ROOT, A.token), pytest.raises(LockLostError) as caught:
        check_lock(ROOT, locked(B))
    name = f"{LockLostError.__module__}.{LockLostError.__qualname__}"
    page = f"[PYTHON_DATA_SOURCE_ERROR] Failed\n  File x, line 1\n    at\n{name}: {caught.value}\n"
    assert reason_of(page) == str(caught.value)
