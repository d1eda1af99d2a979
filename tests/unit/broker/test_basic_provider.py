"""Passwords are checked beside the loop, once for all who present the same, and boundedly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import bcrypt
import pytest

from headgate.broker.basic_provider import CHECKS_MAX, BasicProvider
from headgate.security.errors import CredentialsError, UncheckedCredentialsError
from headgate.security.failed_attempts import PASSWORDS_MAX, FailedAttempts
from headgate.security.password_cache import FRESH_S, PasswordCache
from headgate.security.password_file import PasswordFile
from headgate.security.provider import Credentials, Principal
from headgate.storage.lanes import Done

NOW_S = 1_800_000_000.0
HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()


class ManualLane:
    """A lane whose jobs run when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Done]] = []

    def submit(self, work: Callable[[], Any], done: Done) -> None:
        self.jobs.append((work, done))

    def pause(self, seconds: float) -> bool:
        return False

    def rest(self, seconds: float) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...

    async def run(self) -> int:
        """Run what waits; returns how many jobs that were."""
        await asyncio.sleep(0)
        jobs, self.jobs = self.jobs, []
        for work, done in jobs:
            try:
                result = work()
            except CredentialsError as error:
                done(None, error)
            else:
                done(result, None)
        for _ in range(3):
            await asyncio.sleep(0)
        return len(jobs)


class Rig:
    def __init__(self) -> None:
        self.lane = ManualLane()
        self.attempts = FailedAttempts()
        self.cache = PasswordCache(b"k" * 32)
        users = PasswordFile({"ann": HASH, "bob": HASH})
        self.provider = BasicProvider(users, self.lane, self.cache, self.attempts)

    def ask(
        self, text: str, address: str = "10.0.0.1", now_s: float = NOW_S
    ) -> Principal | Awaitable[Principal]:
        return self.provider.principal(Credentials("basic", text.encode(), None, address), now_s)

    def waiting(self, text: str, address: str = "10.0.0.1", now_s: float = NOW_S) -> Any:
        found = self.ask(text, address, now_s)
        assert not isinstance(found, Principal)
        return found


def story(play: Callable[[Rig], Awaitable[None]]) -> Callable[[], None]:
    def test() -> None:
        async def whole() -> None:
            await play(Rig())

        asyncio.run(whole())

    test.__name__ = play.__name__
    return test


@story
async def test_a_password_is_checked_once_a_minute(rig: Rig) -> None:
    found = rig.waiting("ann:secret")
    assert await rig.lane.run() == 1
    assert await found == Principal("ann")
    assert rig.ask("ann:secret", now_s=NOW_S + FRESH_S - 1) == Principal("ann")
    again = rig.waiting("ann:secret", now_s=NOW_S + FRESH_S)
    assert await rig.lane.run() == 1
    assert await again == Principal("ann")


@story
async def test_thousands_that_come_together_share_one_check(rig: Rig) -> None:
    found = [rig.waiting("ann:secret", f"10.0.{i // 250}.{i % 250}") for i in range(5_000)]
    assert await rig.lane.run() == 1
    assert set(await asyncio.gather(*found)) == {Principal("ann")}


@story
async def test_a_client_that_leaves_ends_the_check_for_nobody(rig: Rig) -> None:
    first, second = rig.waiting("ann:secret"), rig.waiting("ann:secret")
    first.cancel()
    await rig.lane.run()
    assert await second == Principal("ann")


@story
async def test_wrong_ones_are_refused_and_count_also_if_the_client_leaves(rig: Rig) -> None:
    found = rig.waiting("ann:guess")
    await rig.lane.run()
    with pytest.raises(CredentialsError, match="no such name"):
        await found
    rig.waiting("ann:guess 2").cancel()
    await rig.lane.run()
    assert rig.attempts.passwords_left("10.0.0.1", NOW_S) == PASSWORDS_MAX - 2


@story
async def test_an_address_has_so_many_guesses(rig: Rig) -> None:
    right = rig.waiting("bob:secret")
    await rig.lane.run()
    assert await right == Principal("bob")
    guesses = [rig.waiting(f"ann:{i}") for i in range(PASSWORDS_MAX)]
    with pytest.raises(UncheckedCredentialsError, match="this address"):
        rig.ask("ann:one more")
    other = rig.waiting("ann:elsewhere", "10.0.0.2")
    assert await rig.lane.run() == PASSWORDS_MAX + 1
    for result in await asyncio.gather(*guesses, other, return_exceptions=True):
        assert isinstance(result, CredentialsError)
    with pytest.raises(UncheckedCredentialsError):
        rig.ask("ann:secret")
    # One that was right before is served on, though it is not checked again now.
    assert rig.ask("bob:secret", now_s=NOW_S + FRESH_S - 0.5) == Principal("bob")
    later = rig.waiting("ann:secret", now_s=NOW_S + 60)
    await rig.lane.run()
    assert await later == Principal("ann")


@story
async def test_a_known_one_is_served_though_its_minute_is_over_while_none_is_checked(
    rig: Rig,
) -> None:
    rig.cache.was_right(rig.cache.digest(b"bob:secret"), Principal("bob"), NOW_S - 2 * FRESH_S)
    for _ in range(PASSWORDS_MAX):
        rig.attempts.password_failed("10.0.0.1", NOW_S)
    assert rig.ask("bob:secret") == Principal("bob")


@story
async def test_few_wait_at_the_same_time(rig: Rig) -> None:
    waiting = [rig.waiting(f"ann:{i}", f"10.0.0.{i}") for i in range(CHECKS_MAX)]
    with pytest.raises(UncheckedCredentialsError, match="other passwords wait"):
        rig.ask("ann:secret", "10.0.1.1")
    await rig.lane.run()
    await asyncio.gather(*waiting, return_exceptions=True)
    found = rig.waiting("ann:secret", "10.0.1.1")
    await rig.lane.run()
    assert await found == Principal("ann")


@story
async def test_long_ones_cost_nothing(rig: Rig) -> None:
    with pytest.raises(CredentialsError, match="5,004 bytes"):
        rig.ask("ann:" + "x" * 5_000)
    assert await rig.lane.run() == 0


@story
async def test_a_password_that_is_no_longer_right_is_forgotten(rig: Rig) -> None:
    rig.cache.was_right(rig.cache.digest(b"ann:old"), Principal("ann"), NOW_S - 2 * FRESH_S)
    found = rig.waiting("ann:old")
    await rig.lane.run()
    with pytest.raises(CredentialsError):
        await found
    assert rig.cache.last_known(rig.cache.digest(b"ann:old")) is None
