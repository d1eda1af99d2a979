"""Only a holder of a table's lease writes it in S3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.spark_failures import reason_of
from headgate.pipeline.store.lease import FREE, Lease
from headgate.pipeline.store.lock_tokens import (
    LockLostError,
    check_lease,
    with_lease_tokens,
    writer_options,
)
from tests.unit.pipeline.store.test_lease import A, B, Shelf

ROOT = "s3://tables/a"


def locked(lease: Lease) -> Shelf:
    lock = Shelf()
    lock.create(lease)
    return lock


def tokens(root: str = ROOT) -> dict[str, str]:
    found: dict[str, str] = json.loads(writer_options(root).get("lock", "{}"))
    return found


def test_the_writer_gets_the_tokens_of_all_leases() -> None:
    assert writer_options(ROOT) == {"root": ROOT}
    with with_lease_tokens(ROOT, {"x": "a"}), with_lease_tokens("s3://tables/b", {"x": "b"}):
        assert (tokens(), tokens("s3://tables/b")) == ({"x": "a"}, {"x": "b"})
        with with_lease_tokens(ROOT + "/", {}), with_lease_tokens(ROOT + "/", {"y": "inner"}):
            assert tokens() == {"x": "a", "y": "inner"}
        assert tokens() == {"x": "a"}
    assert writer_options(ROOT) == {"root": ROOT}
    assert writer_options("/tables") == {"root": "/tables"}


def test_a_held_lease_passes_the_check() -> None:
    with with_lease_tokens(ROOT, {"x": A.token}):
        check_lease(ROOT, "x", locked(A))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (locked(B), "now held by process 7 on host-b"),
        (locked(FREE), "is free"),
        (Shelf(), "lease of x in s3://tables/a was deleted"),
    ],
)
def test_a_lost_lease_names_its_new_holder(found: Shelf, said: str) -> None:
    with (
        with_lease_tokens(ROOT, {"x": A.token}),
        pytest.raises(LockLostError, match=said) as caught,
    ):
        check_lease(ROOT, "x", found)
    assert isinstance(caught.value, PipelineError)


def test_a_process_without_the_lease_of_that_table_cannot_write() -> None:
    with (
        with_lease_tokens(ROOT, {"y": A.token}),
        pytest.raises(LockLostError, match=r"table x in .* is not held by this process"),
    ):
        check_lease(ROOT, "x", locked(A))


def test_a_folder_of_a_file_system_needs_no_token(tmp_path: Path) -> None:
    check_lease(str(tmp_path), "x")


def test_the_sentence_survives_spark() -> None:
    """The writer's commit fails in another process, and comes back as a page."""
    with with_lease_tokens(ROOT, {"x": A.token}), pytest.raises(LockLostError) as caught:
        check_lease(ROOT, "x", locked(B))
    name = f"{LockLostError.__module__}.{LockLostError.__qualname__}"
    page = f"[PYTHON_DATA_SOURCE_ERROR] Failed\n  File x, line 1\n    at\n{name}: {caught.value}\n"
    assert reason_of(page) == str(caught.value)
