"""The lock in S3 around a job: refusals, renewal, release."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.store import s3_lock as module
from headgate.pipeline.store.lease import FREE, LEASE_S, Lease, LockState, TableHeldError
from headgate.pipeline.store.lock_tokens import check_lease, writer_options
from headgate.pipeline.store.s3_lock import s3_leases, s3_table_leases
from headgate.pipeline.store.table_store import store_of
from tests.unit.pipeline.store.test_lease import A, B, Shelf, Time

ROOT = "s3://tables/a"


def test_the_holder_may_write_and_releases_the_lock(tmp_path: Path) -> None:
    lock = Shelf()
    with s3_leases(ROOT, {"x": lock}):
        assert lock.found is not None
        lease = lock.found.lease
        assert (lease.process, lease.host) == (os.getpid(), socket.gethostname())
        assert json.loads(writer_options(ROOT)["lock"]) == {"x": lease.token}
        check_lease(ROOT, "x", lock)
    assert lock.found.lease == FREE
    assert writer_options(ROOT) == {"root": ROOT}
    with pytest.raises(RuntimeError, match="the job"), s3_leases(ROOT, {"x": lock}):
        raise RuntimeError("the job")
    assert lock.token == FREE.token


def test_a_second_writer_is_refused_with_the_holder_s_name() -> None:
    lock, said = Shelf(), list[str]()
    lock.create(A)
    assert lock.found is not None
    tag = lock.found.tag
    time = Time((6.0, lambda: lock.swap(A, tag)))
    held = s3_leases(ROOT, {"x": lock}, said.append, monotonic=time.monotonic, wait=time.wait)
    with pytest.raises(InputError, match=r"another job \(process 7 on host-a, since 2026"), held:
        pass
    (line,) = said
    assert "host-a" in line
    assert lock.token == "a"


def test_a_wait_for_a_dead_holder_is_announced() -> None:
    lock, said, time = Shelf(), list[str](), Time()
    lock.create(A)
    with s3_leases(ROOT, {"x": lock}, said.append, monotonic=time.monotonic, wait=time.wait):
        assert lock.token != "a"
    assert "60 s if not" in said[0]


def test_a_folder_that_cannot_be_locked_is_an_error() -> None:
    class Gone(Shelf):
        def read(self) -> LockState | None:
            raise OSError("Generic S3 error: no route")

    with (
        pytest.raises(InputError, match="cannot be used: Generic S3 error: no route"),
        s3_leases(ROOT, {"x": Gone()}),
    ):
        pass
    careless = Shelf()
    careless.create = careless._put  # type: ignore[assignment]
    with pytest.raises(InputError, match="conditional writes"), s3_leases(ROOT, {"x": careless}):
        pass


def test_the_lease_is_renewed_even_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.001)
    renewed = threading.Event()

    class Shaky(Shelf):
        failures = 2

        def swap(self, lease: Lease, tag: str) -> str | None:
            if lease.renewals and self.failures:
                self.failures -= 1
                raise OSError("no route")
            if lease.renewals > 4:
                renewed.set()
            return super().swap(lease, tag)

    lock = Shaky()
    with s3_leases(ROOT, {"x": lock}):
        assert renewed.wait(30)
    assert lock.token == FREE.token


def test_an_unreachable_store_at_the_end_hides_no_error() -> None:
    class Going(Shelf):
        is_gone = False

        def swap(self, lease: Lease, tag: str) -> str | None:
            if self.is_gone:
                raise OSError("no route")
            return super().swap(lease, tag)

    lock = Going()

    def fail() -> None:
        lock.is_gone = True
        raise RuntimeError("the job")

    with pytest.raises(RuntimeError, match="the job"), s3_leases(ROOT, {"x": lock}):
        fail()


def leases(*names: str) -> dict[str, Shelf]:
    return {name: Shelf() for name in names}


def test_a_refused_job_gives_back_what_it_took() -> None:
    locks, time = leases("a", "b", "c"), Time()
    locks["b"].create(A)
    found = locks["b"].found
    assert found is not None
    time.events.append((6.0, lambda: locks["b"].swap(A, found.tag)))
    held = s3_leases(ROOT, locks, monotonic=time.monotonic, wait=time.wait)
    with pytest.raises(InputError, match="table b in s3://tables/a is being written"), held:
        pass
    assert locks["a"].token == FREE.token
    assert locks["c"].found is None


def test_the_leases_of_one_dead_job_expire_together() -> None:
    locks, time, said = leases("a", "b", "c"), Time(), list[str]()
    for lock in locks.values():
        lock.create(A)
    with s3_leases(ROOT, locks, said.append, monotonic=time.monotonic, wait=time.wait):
        assert {lock.token for lock in locks.values()}.isdisjoint({"a", FREE.token})
    assert time.now_s == LEASE_S
    assert len(said) == 1


def test_a_lease_that_another_job_took_during_the_wait_is_refused() -> None:
    """Both watched the leases of a dead job; the other was faster at the second one."""
    locks, time = leases("a", "b"), Time()
    for lock in locks.values():
        lock.create(A)
    found = locks["b"].found
    assert found is not None
    time.events.append((LEASE_S, lambda: locks["b"].swap(B, found.tag)))
    held = s3_leases(ROOT, locks, monotonic=time.monotonic, wait=time.wait)
    with pytest.raises(InputError, match=r"table b .*process 7 on host-b"), held:
        pass
    assert (locks["a"].token, locks["b"].token) == (FREE.token, "b")


def test_leases_are_renewed_while_the_job_waits_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "RENEW_S", 0.001)
    locks, time, renewed = leases("a", "b"), Time(), threading.Event()
    locks["b"].create(A)

    class Renewed(Shelf):
        def swap(self, lease: Lease, tag: str) -> str | None:
            if lease.renewals:
                renewed.set()
            return super().swap(lease, tag)

    def wait(seconds: float) -> None:
        assert renewed.wait(30)
        time.wait(seconds)

    locks["a"] = Renewed()
    with s3_leases(ROOT, locks, monotonic=time.monotonic, wait=wait):
        assert locks["a"].token not in ("a", FREE.token)


class Objects:
    """The objects of one folder: the lock of earlier releases, and a lease."""

    def __init__(self) -> None:
        self.lock, self.lease = Shelf(), Shelf()

    def lock_object(self, root: str) -> Shelf:
        assert root == ROOT
        return self.lock

    def lease_object(self, root: str, name: str) -> Shelf:
        assert (root, name) == (ROOT, "x")
        return self.lease


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Objects:
    found = Objects()
    monkeypatch.setattr(module, "store_of", lambda _: store_of(str(tmp_path)))
    monkeypatch.setattr(module, "s3_objects", lambda: found)
    return found


@pytest.mark.usefixtures("objects")
def test_the_names_in_the_folder_are_checked_first(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    seen: list[list[str]] = []
    with s3_table_leases(ROOT, ["x"], seen.append, lambda _: None):
        assert seen == [["thesis.txt"]]
    (tmp_path / "thesis.txt").unlink()
    tmp_path.rmdir()
    tmp_path.touch()
    with (
        pytest.raises(InputError, match="cannot be used: Not a directory"),
        s3_table_leases(ROOT, ["x"], seen.append, lambda _: None),
    ):
        pass


def test_a_job_of_an_earlier_release_is_respected(objects: Objects) -> None:
    objects.lock.create(A)
    with (
        pytest.raises(InputError, match=r"earlier release .process 7 on host-a"),
        s3_table_leases(ROOT, ["x"], lambda _: None, lambda _: None),
    ):
        pass
    assert objects.lease.found is None


def test_an_impatient_job_is_refused_at_once(objects: Objects) -> None:
    objects.lease.create(A)
    with (
        pytest.raises(TableHeldError, match="process 7 on host-a"),
        s3_table_leases(ROOT, ["x"], lambda _: None, lambda _: None, is_patient=False),
    ):
        pass
    assert objects.lease.token == "a"
