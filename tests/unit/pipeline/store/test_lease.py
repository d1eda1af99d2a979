"""The lease in S3 has one holder at a time, whatever fails, without a common clock."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.store.lease import (
    FREE,
    LEASE_S,
    POLL_S,
    RENEW_S,
    Lease,
    LeaseRenewal,
    LockHeldError,
    LockState,
    NoConditionalPutError,
    take,
)

A, B, C = (Lease(name, f"host-{name}", 7, "2026-11-22T10:00:00Z") for name in "abc")


class Shelf:
    """One object in a store that knows conditions."""

    def __init__(self) -> None:
        self.found: LockState | None = None
        self._tags = itertools.count()

    def read(self) -> LockState | None:
        return self.found

    def create(self, lease: Lease) -> str | None:
        return self._put(lease) if self.found is None else None

    def swap(self, lease: Lease, tag: str) -> str | None:
        return self._put(lease) if self.found is not None and self.found.tag == tag else None

    def _put(self, lease: Lease) -> str:
        self.found = LockState(lease, f'"{next(self._tags)}"')
        return self.found.tag

    @property
    def token(self) -> str:
        assert self.found is not None
        return self.found.lease.token


class Deaf(Shelf):
    """Carries puts out, and the answer is lost: the library tries again and is told no."""

    def create(self, lease: Lease) -> str | None:
        super().create(lease)
        return None

    def swap(self, lease: Lease, tag: str) -> str | None:
        super().swap(lease, tag)
        return None


class Time:
    """A clock of one's own; what is to happen at a time happens while somebody waits."""

    def __init__(self, *events: tuple[float, object]) -> None:
        self.now_s = 0.0
        self.events = list(events)

    def monotonic(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        while self.events and self.events[0][0] <= self.now_s:
            event = self.events.pop(0)[1]
            assert callable(event)
            event()


def taken(lock: Shelf, mine: Lease, time: Time | None = None) -> LeaseRenewal:
    time = time or Time()
    tag = take(lock, mine, monotonic=time.monotonic, wait=time.wait)
    return LeaseRenewal(lock, mine, tag)


def test_the_first_job_acquires_the_lease_and_the_next_after_its_release() -> None:
    lock, time = Shelf(), Time()
    taken(lock, A).release()
    assert lock.found is not None
    assert lock.found.lease == FREE
    taken(lock, B, time)
    assert (lock.token, time.now_s) == ("b", 0.0)


def test_a_renewed_lease_refuses_others_with_its_holder() -> None:
    lock = Shelf()
    holder = taken(lock, A)
    time = Time((RENEW_S, holder.renew))
    told: list[Lease] = []
    with pytest.raises(
        LockHeldError, match="process 7 on host-a, since 2026-11-22T10:00:00Z"
    ) as caught:
        take(lock, B, monotonic=time.monotonic, wait=time.wait, on_wait=told.append)
    assert (caught.value.holder.token, told) == ("a", [A])
    assert time.now_s <= RENEW_S + POLL_S
    assert lock.token == "a"


def test_an_expired_lease_is_taken_over() -> None:
    lock, time = Shelf(), Time()
    dead = taken(lock, A)
    taken(lock, B, time)
    assert (lock.token, time.now_s) == ("b", LEASE_S)
    dead.renew()
    assert dead.is_lost
    dead.release()
    assert lock.token == "b"


def test_a_lease_released_during_the_wait_is_acquired_at_once() -> None:
    lock = Shelf()
    time = Time((9.0, taken(lock, A).release))
    taken(lock, B, time)
    assert (lock.token, time.now_s) == ("b", 10.0)


def test_of_two_waiting_jobs_one_acquires_the_lease() -> None:
    """The other sees another tag, which is a holder that lives."""
    lock = Shelf()
    taken(lock, A)
    time = Time((LEASE_S - 1, lambda: lock.swap(B, lock.found.tag if lock.found else "")))
    with pytest.raises(LockHeldError, match="host-b"):
        taken(lock, C, time)
    assert lock.token == "b"


def test_a_job_that_loses_the_race_is_refused() -> None:
    class Late(Shelf):
        def swap(self, lease: Lease, tag: str) -> str | None:
            super().swap(B, tag)
            return super().swap(lease, tag)

    lock = Late()
    lock.create(FREE)
    with pytest.raises(LockHeldError, match="host-b"):
        taken(lock, C)
    lock.found = None
    lock.create = lambda lease: Shelf.create(lock, B) and None  # type: ignore[method-assign]
    with pytest.raises(LockHeldError, match="host-b"):
        taken(lock, C, Time((RENEW_S, lambda: Shelf.swap(lock, B, lock.found.tag))))  # type: ignore[union-attr]


@pytest.mark.parametrize("before", [None, FREE])
def test_a_lost_response_does_not_lose_the_lease(before: Lease | None) -> None:
    lock = Deaf()
    if before is not None:
        lock.create(before)
    holder = taken(lock, A)
    for _ in range(3):
        holder.renew()
    assert not holder.is_lost
    holder.release()
    assert lock.token == FREE.token


def test_a_deleted_lock_object_loses_the_lease() -> None:
    lock = Shelf()
    holder = taken(lock, A)
    lock.found = None
    holder.renew()
    assert holder.is_lost
    holder.renew()
    assert lock.found is None
    taken(lock, A)
    time = Time((5.0, lambda: setattr(lock, "found", None)))
    with pytest.raises(LockHeldError):
        taken(lock, B, time)


@pytest.mark.parametrize("ignored", ["create", "swap"])
def test_a_store_that_ignores_conditions_is_refused(ignored: str) -> None:
    lock = Shelf()
    setattr(lock, ignored, lambda lease, tag="": lock._put(lease))
    with pytest.raises(NoConditionalPutError):
        taken(lock, A)


def test_a_store_that_does_not_answer_is_an_error() -> None:
    class Gone(Shelf):
        def read(self) -> LockState | None:
            raise OSError("no route")

    with pytest.raises(OSError, match="no route"):
        taken(Gone(), A)


def test_every_renewal_changes_the_content() -> None:
    lock = Shelf()
    holder = taken(lock, A)
    contents = set()
    for _ in range(3):
        holder.renew()
        assert lock.found is not None
        contents.add(lock.found.lease.to_bytes())
    assert len(contents) == 3


def test_contents_round_trip() -> None:
    for lease in (A, FREE, replace(B, renewals=5)):
        assert Lease.from_bytes(lease.to_bytes()) == lease


@pytest.mark.parametrize("content", [b"", b"x", b"[]", b"{}", b'{"token": "t"}', b"\xff"])
def test_an_unknown_content_counts_as_held(content: bytes) -> None:
    lease = Lease.from_bytes(content)
    assert lease.token not in ("", "a")
    assert "unknown host" in str(lease)


ACTS = ("take", "renew", "release", "die")


@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 2)), max_size=40))
def test_two_jobs_never_hold_the_lease(acts: list[tuple[str, int]]) -> None:
    """Whoever lives renews whenever somebody else waits; whoever died does not."""
    lock = Shelf()
    holders: dict[int, LeaseRenewal] = {}
    dead: list[LeaseRenewal] = []
    tokens = itertools.count()
    for act, who in acts:
        if act == "take" and who not in holders:
            time = Time(*((RENEW_S * i, k.renew) for i in range(1, 9) for k in holders.values()))
            try:
                holders[who] = taken(lock, replace(A, token=f"t{next(tokens)}"), time)
            except LockHeldError:
                assert holders
        elif act == "renew" and who in holders:
            holders[who].renew()
        elif act == "release" and who in holders:
            holders.pop(who).release()
        elif act == "die" and who in holders:
            dead.append(holders.pop(who))
        assert len(holders) <= 1
        for keeper in holders.values():
            assert not keeper.is_lost
    if holders:
        for keeper in dead:
            keeper.renew()
            assert keeper.is_lost
