"""What it costs to find out who a client is: tokens by algorithm, passwords, whole connections; and
what authorization adds to a publish."""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Awaitable, Callable

import bcrypt

from bench.report import Table, median, number
from headgate.base.identity import Identity
from headgate.base.names import parse_topic
from headgate.broker.authentication import Authentication, ClientCredentials
from headgate.broker.basic_provider import BasicProvider
from headgate.broker.connection.connection import Connection
from headgate.metadata.grants import Action
from headgate.policy.settings import Settings
from headgate.security.failed_attempts import FailedAttempts
from headgate.security.password_cache import PasswordCache
from headgate.security.password_file import PasswordFile
from headgate.security.provider import Credentials, Provider
from headgate.security.token_keys import (
    SigningKey,
    TokenKey,
    new_key_pair,
    private_key,
    public_key,
    secret_key,
)
from headgate.security.token_provider import TokenProvider
from headgate.security.tokens import TokenVerifier, new_token
from headgate.storage.lanes import ThreadLane
from headgate.testing import NetworkProfile, World

SECRET_US_MAX = 100
PAIR_US_MAX = 300
KNOWN_US_MAX = 20
"""Of a password that was right within the last minute."""

AUTHORIZATION_US_MAX = 2
"""More of a publish."""

EXPIRES_S = 4_000_000_000
CONNECTIONS = 500
PUBLISHED = 4_000
ROLE = "role"
TOPIC = "persistent://public/default/bench"
BCRYPT_ROUNDS = 10
"""What ``htpasswd -B`` writes by default is 5; this is the cost that OWASP asks for at least."""


def keys_of(algorithm: str) -> tuple[SigningKey, TokenKey]:
    """A key that signs and the one that checks."""
    if algorithm.startswith("HS"):
        key = secret_key(b"0123456789abcdef" * 4, "k", algorithm)
        return key, key
    private, public = new_key_pair(algorithm)
    return private_key(private, "k", algorithm), public_key(public, "k", algorithm)


def authentication_of(*providers: Provider) -> Authentication:
    """The authentication of a broker with these providers."""
    return Authentication(Settings(), providers, FailedAttempts(), time.time)


def cpu_us(work: Callable[[], object], count: int, rounds: int) -> float:
    """Microseconds of CPU of one call, the median of so many rounds."""
    found = []
    for _ in range(rounds):
        began_ns = time.process_time_ns()
        for _ in range(count):
            work()
        found.append((time.process_time_ns() - began_ns) / 1_000 / count)
    return median(found)


def token_us(algorithm: str, count: int, rounds: int) -> float:
    """A whole session by a token of one algorithm."""
    signing, checking = keys_of(algorithm)
    claims = {"sub": "a-role-of-some-length", "exp": EXPIRES_S, "jti": "0123456789abcdef"}
    client = ClientCredentials(Credentials("token", new_token(signing, claims, {}).encode()))
    authentication = authentication_of(TokenProvider(TokenVerifier([checking])))
    return cpu_us(lambda: authentication.session(client), count, rounds)


async def known_password_us(count: int, rounds: int) -> float:
    """A session by a password that was checked a moment ago."""
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    lane = ThreadLane(asyncio.get_running_loop(), "passwords")
    provider = BasicProvider(
        PasswordFile({"ann": hashed}), lane, PasswordCache(b"k" * 32), FailedAttempts()
    )
    client = ClientCredentials(Credentials("basic", b"ann:secret"))
    authentication = authentication_of(provider)
    found = authentication.session(client)
    if isinstance(found, asyncio.Task):
        await found
    lane.close()
    return cpu_us(lambda: authentication.session(client), count, rounds)


class RoleWorld(World):
    """A broker all of whose clients have one role."""

    def accept(self) -> Connection:
        connection = super().accept()
        connection.identity = Identity(ROLE)
        return connection


def without_collections(story: Callable[[World], Awaitable[float]], world: World) -> float:
    """Play a story without collections of garbage, whose pauses come by chance."""

    async def whole() -> float:
        return await story(world)

    gc.collect()
    gc.disable()
    try:
        return world.run(whole())
    finally:
        gc.enable()


def connect_us(algorithm: str) -> float:
    """A connection from its opening to CONNECTED, both sides, in simulated time; without
    authentication if there is no algorithm."""
    settings, providers, options = {}, [], {}
    if algorithm:
        signing, checking = keys_of(algorithm)
        settings = {"authenticationEnabled": "true", "authenticationProviders": "token"}
        providers = [TokenProvider(TokenVerifier([checking]))]
        token = new_token(signing, {"sub": "role", "exp": EXPIRES_S}, {}).encode()
        options = {"auth_method": "token", "auth_data": token}
    with World(settings=settings, providers=providers, network=NetworkProfile(0, 0)) as world:

        async def whole(world: World) -> float:
            await world.start()
            began_ns = time.process_time_ns()
            for _ in range(CONNECTIONS):
                await world.connect(**options)
            return (time.process_time_ns() - began_ns) / 1_000 / CONNECTIONS

        return without_collections(whole, world)


async def publish_us(world: World) -> float:
    """An entry from SEND to its receipt, both sides, by a role with a grant on the namespace."""
    broker = await world.start()
    actions = frozenset[Action](("produce",))
    change = broker.catalog.plan_namespace_grant(parse_topic(TOPIC).namespace, ROLE, actions)
    await broker.commit(change)
    producer = await (await world.connect()).producer(TOPIC)
    await producer.send(b"first")
    began_ns = time.process_time_ns()
    for _ in range(PUBLISHED // 100):
        await asyncio.gather(*[producer.send_nowait(b"x") for _ in range(100)])
    return (time.process_time_ns() - began_ns) / 1_000 / PUBLISHED


def authorization_us(rounds: int) -> float:
    """What authorization adds to a publish, the median of rounds in turns ABBA."""
    added = []
    for _ in range(rounds):
        each_us = []
        for is_enabled in (False, True, True, False):
            settings = {"authorizationEnabled": "true", "superUserRoles": "super"}
            with RoleWorld(
                settings=settings if is_enabled else {}, network=NetworkProfile(0, 0)
            ) as world:
                each_us.append(without_collections(publish_us, world))
        added.append((each_us[1] + each_us[2] - each_us[0] - each_us[3]) / 2)
    return median(added)


def measure(count: int, rounds: int) -> Table:
    """All figures."""
    table = Table("Authentication: CPU of one client")
    for algorithm in ("HS256", "HS512"):
        table.check(f"token, {algorithm}", token_us(algorithm, count, rounds), "us", SECRET_US_MAX)
    for algorithm in ("RS256", "ES256"):
        table.check(f"token, {algorithm}", token_us(algorithm, count, rounds), "us", PAIR_US_MAX)
    known_us = asyncio.run(known_password_us(count, rounds))
    table.check("password that is known", known_us, "us", KNOWN_US_MAX)
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(BCRYPT_ROUNDS))
    check_us = cpu_us(lambda: bcrypt.checkpw(b"secret", hashed), 1, rounds)
    table.add("password that is not, beside the loop", f"{number(check_us / 1_000)} ms")
    for algorithm in ("", "HS256", "RS256"):
        each_us = median([connect_us(algorithm) for _ in range(rounds)])
        what = f"with a token of {algorithm}" if algorithm else "without authentication"
        table.add(f"a simulated connection, both sides, {what}", f"{number(each_us)} us")
    added_us = authorization_us(rounds)
    table.check("a publish, with authorization", added_us, "us more", AUTHORIZATION_US_MAX)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    measure(*((300, 3) if options.quick else (2_000, 7))).print()


if __name__ == "__main__":
    main()
