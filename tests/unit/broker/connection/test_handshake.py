"""CONNECT and AUTH_RESPONSE on whole simulated brokers: who gets in, how long, and as whom."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headgate.base.bounded_lines import ROLE_LINES_PER_MINUTE
from headgate.base.identity import NOBODY, Identity
from headgate.broker.authentication import FAILURE, SUCCESS
from headgate.broker.connection.bounds import HANDSHAKE_TIMEOUT_S
from headgate.broker.connection.connection import Connection
from headgate.security.certificate_provider import CertificateProvider
from headgate.security.errors import CredentialsError, UncheckedCredentialsError
from headgate.security.provider import Credentials, Principal
from headgate.testing import RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.ids import NO_REQUEST
from headgate.wire.messages import BaseCommand
from headgate.wire.replies import REFRESH
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.test_policy_updates import set_dynamic
from tests.unit.denying import Deny
from tests.unit.security.made_tokens import token_of, token_provider

ON = {
    "authenticationEnabled": "true",
    "authenticationProviders": "token",
    "proxyRoles": "proxy",
}
CHECK_S = 60
"""authenticationRefreshCheckSeconds"""


class SlowProvider:
    """Says who a client is (its data) when the test says so."""

    method = "slow"

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[Principal]] = []

    def principal(self, credentials: Credentials, now_s: float) -> Awaitable[Principal]:
        self.waiting.append(asyncio.get_running_loop().create_future())
        return self.waiting[-1]


def slow_of(world: World) -> SlowProvider:
    (found,) = (each for each in world.providers if isinstance(each, SlowProvider))
    return found


def now_s(world: World) -> float:
    return world.wall_ms() / 1_000


def server_side(world: World) -> Connection:
    """The broker's side of the only connection."""
    (connection,) = world.broker.connections
    return connection


def authenticated(**options: Any) -> Callable[[Any], Callable[[], None]]:
    """A story on a broker that authenticates."""
    settings = {**ON, **options.pop("settings", {})}

    def decorate(story: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
        providers = [token_provider(), SlowProvider()]
        return played(settings=settings, providers=providers, **options)(story)

    return decorate


def supplier(world: World, role: str, lifetime_s: float) -> Callable[[], bytes]:
    return lambda: token_of(role, now_s(world) + lifetime_s)


async def refused(world: World, **options: Any) -> RefusedError:
    client = world.open_connection()
    with pytest.raises(RefusedError) as refusal:
        await client.connect(**options)
    await asyncio.sleep(1)
    assert not client.is_open
    assert not world.broker.connections
    return refusal.value


def token(role: str, **claims: Any) -> dict[str, Any]:
    return {"auth_method": "token", "auth_data": token_of(role, **claims)}


@played()
async def test_without_authentication_credentials_are_not_looked_at(world: World) -> None:
    await world.connect(auth_method="token", auth_data=b"no token")
    assert server_side(world).identity is NOBODY


@played()
async def test_without_authentication_there_is_no_response(world: World) -> None:
    client = await world.connect()
    client.write(frames.auth_response("token", b"x"))
    await asyncio.sleep(1)
    assert not client.is_open


@authenticated()
async def test_a_good_token_opens_the_connection(world: World) -> None:
    client = await world.connect(**token("ann"))
    assert server_side(world).identity == Identity("ann")
    await client.producer(TOPIC)


@authenticated()
async def test_wrong_and_missing_ones_are_refused_in_pulsars_words(world: World) -> None:
    for options in (
        {},
        {"auth_method": "token", "auth_data": b"x"},
        {"auth_method": "athenz", "auth_data": b"x"},
        token("ann", expires_s=now_s(world) - 1),
    ):
        error = await refused(world, **options)
        assert error.code == ServerError.AUTHENTICATION_ERROR
        assert error.message == "Failed to authenticate"
    assert world.broker.counts.connections_established == 0
    assert world.broker.counts.connections_failed == 4


@authenticated()
async def test_the_refusal_answers_no_request(world: World) -> None:
    client = world.open_connection()
    client.write(frames.connect(auth_method="token", auth_data=b"x"))
    await asyncio.sleep(1)
    (answer,) = client.unexpected
    assert answer.error.request_id == NO_REQUEST


@authenticated(settings={"anonymousUserRole": "anyone"})
async def test_a_client_without_credentials_is_anonymous(world: World) -> None:
    await world.connect()
    assert server_side(world).identity == Identity("anyone")
    await refused_second(world)


async def refused_second(world: World) -> None:
    client = world.open_connection()
    with pytest.raises(RefusedError):
        await client.connect(auth_method="token", auth_data=b"x")


@authenticated()
async def test_authorization_asks_about_the_role(world: World) -> None:
    world.broker.authorizer = deny = Deny()
    error = await refused(world, **token("proxy"), original_principal="ann")
    assert error.code == ServerError.AUTHORIZATION_ERROR
    assert deny.asked == [("ann through proxy", "connection.open", "", "")]


@authenticated()
async def test_a_proxy_names_its_client_and_no_other_role_does(world: World) -> None:
    await world.connect(**token("proxy"), original_principal="ann")
    connection = server_side(world)
    assert connection.identity == Identity("proxy", "ann")
    connection.abort()
    await asyncio.sleep(1)
    for role, named in (("proxy", ""), ("proxy", "proxy"), ("ann", "bob")):
        error = await refused(world, **token(role), original_principal=named)
        assert error.code == ServerError.AUTHORIZATION_ERROR
        assert error.message.startswith("Invalid roles: ")


@authenticated(settings={"authenticateOriginalAuthData": "true"})
async def test_forwarded_credentials_are_checked(world: World) -> None:
    await world.connect(
        **token("proxy"),
        original_principal="ann",
        original_auth_method="token",
        original_auth_data=token_of("ann").decode(),
    )
    connection = server_side(world)
    assert connection.identity == Identity("proxy", "ann")
    connection.abort()
    await asyncio.sleep(1)
    await refused(world, **token("proxy"), original_principal="ann")
    await refused(
        world,
        **token("proxy"),
        original_principal="ann",
        original_auth_method="token",
        original_auth_data=token_of("bob").decode(),
    )


@authenticated()
async def test_no_mutant_of_a_connect_gets_in(world: World) -> None:
    """Bytes of a CONNECT with a good token are changed at random: what gets in has that token."""
    good = frames.connect(**token("ann", expires_s=now_s(world) + 10**6))
    for _ in range(400):
        mutant = bytearray(good)
        for _ in range(world.rng.randrange(1, 4)):
            mutant[world.rng.randrange(len(mutant))] = world.rng.randrange(256)
        client = world.open_connection()
        client.write(bytes(mutant))
        await asyncio.sleep(0.1)
        for connection in list(world.broker.connections):
            assert connection.peer is None or connection.identity == Identity("ann")
            assert (connection.peer is None) == (connection.identity is NOBODY)
            connection.abort()
        await asyncio.sleep(0.1)


@played(settings=ON, providers=[CertificateProvider(), token_provider()])
async def test_the_certificate_is_that_of_the_connection(world: World) -> None:
    client = world.open_connection()
    server_side(world)._transport._extra["peercert"] = {  # type: ignore[attr-defined]
        "subject": ((("commonName", "ann"),),),
        "notAfter": "Jan  1 00:00:00 2100 GMT",
    }
    await client.connect(auth_method="tls", refreshes_credentials=True)
    assert server_side(world).identity == Identity("ann")
    client.close()
    await asyncio.sleep(1)
    await refused(world, auth_method="tls")


@played(
    settings={**ON, "authenticateOriginalAuthData": "true"},
    providers=[CertificateProvider(), token_provider()],
)
async def test_a_proxy_cannot_lend_its_certificate_to_its_client(world: World) -> None:
    client = world.open_connection()
    server_side(world)._transport._extra["peercert"] = {  # type: ignore[attr-defined]
        "subject": ((("commonName", "proxy"),),)
    }
    with pytest.raises(RefusedError) as refusal:
        await client.connect(auth_method="tls", original_auth_method="tls")
    assert refusal.value.code == ServerError.AUTHENTICATION_ERROR


# -- providers that take time ------------------------------------------------------------------


async def waiting_client(world: World) -> tuple[SimClient, asyncio.Task[Any]]:
    client = world.open_connection()
    connecting = asyncio.get_running_loop().create_task(
        client.connect(auth_method="slow", auth_data=b"x")
    )
    await asyncio.sleep(1)
    assert client.is_open
    assert not connecting.done()
    return client, connecting


@authenticated()
async def test_a_provider_may_take_time(world: World) -> None:
    client, connecting = await waiting_client(world)
    assert server_side(world).peer is None
    slow_of(world).waiting.pop().set_result(Principal("ann"))
    await connecting
    assert server_side(world).identity == Identity("ann")
    await client.producer(TOPIC)


@authenticated()
async def test_and_refuse_then(world: World) -> None:
    for error, code in (
        (CredentialsError("wrong"), ServerError.AUTHENTICATION_ERROR),
        (UncheckedCredentialsError("busy"), ServerError.SERVICE_NOT_READY),
    ):
        client, connecting = await waiting_client(world)
        slow_of(world).waiting.pop().set_exception(error)
        with pytest.raises(RefusedError) as refusal:
            await connecting
        assert refusal.value.code == code
        await asyncio.sleep(1)
        assert not client.is_open


@authenticated()
async def test_no_command_is_taken_meanwhile(world: World) -> None:
    for frame in (frames.ping(), frames.lookup(1, TOPIC), frames.auth_response("slow", b"x")):
        client, connecting = await waiting_client(world)
        client.write(frame)
        await asyncio.sleep(1)
        assert not client.is_open
        assert connecting.exception() is not None
        await asyncio.sleep(1)
        assert slow_of(world).waiting.pop().cancelled()
    assert not world.broker.connections


@authenticated()
async def test_the_time_of_the_handshake_goes_on(world: World) -> None:
    client, connecting = await waiting_client(world)
    await asyncio.sleep(HANDSHAKE_TIMEOUT_S)
    assert not client.is_open
    assert connecting.exception() is not None


@authenticated()
async def test_a_client_that_leaves_meanwhile_leaves_nothing(world: World) -> None:
    client, connecting = await waiting_client(world)
    client.abort()
    await asyncio.sleep(1)
    assert connecting.exception() is not None
    assert slow_of(world).waiting.pop().cancelled()
    assert not world.broker.connections
    assert world.broker.counts.connections_failed == 1


# -- credentials that lapse --------------------------------------------------------------------


def sessions_count(world: World) -> int:
    authentication = world.broker.authentication
    assert authentication is not None
    return len(authentication.sessions)


@authenticated()
async def test_new_credentials_are_asked_for_before_the_old_ones_lapse(world: World) -> None:
    client = await world.connect(token=supplier(world, "ann", 600))
    producer = await client.producer(TOPIC)
    await asyncio.sleep(600 - CHECK_S - 2)
    assert client.challenges_count == 0
    await asyncio.sleep(4)
    assert client.challenges_count == 1
    await asyncio.sleep(1_800)
    assert client.challenges_count == 4
    await producer.send(b"x")
    assert sessions_count(world) == 1
    client.close()
    await asyncio.sleep(1)
    assert sessions_count(world) == 0


@authenticated()
async def test_the_challenge_is_pulsars(world: World) -> None:
    client = world.open_connection()
    challenges: list[BaseCommand] = []
    receive = client._receive

    def watch(command: BaseCommand, body: bytes | None) -> None:
        if command.type == CommandType.AUTH_CHALLENGE:
            challenges.append(command)
        receive(command, body)

    client._receive = watch  # type: ignore[method-assign]
    await client.connect(token=supplier(world, "ann", 100))
    await asyncio.sleep(52)
    (challenge,) = challenges
    data = challenge.authChallenge.challenge
    assert (data.auth_method_name, data.auth_data) == ("token", REFRESH)
    assert challenge.authChallenge.protocol_version == 21
    assert challenge.authChallenge.server_version == "simulated"


@authenticated()
async def test_a_token_of_seconds_is_replaced_again_and_again(world: World) -> None:
    client = await world.connect(token=supplier(world, "ann", 6))
    await asyncio.sleep(60)
    assert client.is_open
    assert 10 <= client.challenges_count <= 20


@authenticated()
async def test_a_client_that_does_not_answer_ends_when_its_token_lapses(world: World) -> None:
    client = await world.connect(token=supplier(world, "ann", 100))
    client._token = None
    await asyncio.sleep(98)
    assert client.challenges_count == 1
    assert client.is_open
    await asyncio.sleep(4)
    assert not client.is_open
    assert sessions_count(world) == 0


def test_very_many_tokens_that_lapse_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="headgate.connection")

    @authenticated()
    async def story(world: World) -> None:
        clients = [
            await world.connect(**token("ann", expires_s=now_s(world) + 10))
            for _ in range(ROLE_LINES_PER_MINUTE + 5)
        ]
        await asyncio.sleep(12)
        assert not any(client.is_open for client in clients)

    story()
    assert sum("have lapsed" in text for text in caplog.messages) == ROLE_LINES_PER_MINUTE


@authenticated()
async def test_one_that_cannot_be_asked_ends_then_too(world: World) -> None:
    client = await world.connect(**token("ann", expires_s=now_s(world) + 100))
    await asyncio.sleep(98)
    assert client.is_open
    await asyncio.sleep(4)
    assert client.challenges_count == 0
    assert not client.is_open


@authenticated()
async def test_the_same_token_again_does_not_extend_the_session(world: World) -> None:
    same = token_of("ann", now_s(world) + 100)
    client = await world.connect(token=lambda: same)
    await asyncio.sleep(98)
    assert client.is_open
    assert 1 < client.challenges_count < 10
    await asyncio.sleep(4)
    assert not client.is_open


@authenticated()
async def test_an_answer_that_is_wrong_or_of_another_role_ends_it(world: World) -> None:
    for other in (lambda: token_of("bob"), lambda: b"x", lambda: token_of("ann", 5)):
        client = await world.connect(token=supplier(world, "ann", 100))
        client._token = other
        await asyncio.sleep(55)
        assert client.challenges_count == 1
        assert not client.is_open
        (answer,) = client.unexpected
        assert answer.error.error == ServerError.AUTHENTICATION_ERROR
        assert answer.error.message == "Failed to authenticate"


@authenticated()
async def test_an_answer_to_no_challenge_breaks_the_protocol(world: World) -> None:
    client = await world.connect(token=supplier(world, "ann", 100))
    client.write(frames.auth_response("token", token_of("ann")))
    await asyncio.sleep(1)
    assert not client.is_open


@authenticated()
async def test_credentials_that_lapse_never_are_not_watched(world: World) -> None:
    client = await world.connect(token=lambda: token_of("ann"))
    await asyncio.sleep(3_000)
    assert client.is_open
    assert sessions_count(world) == client.challenges_count == 0


@authenticated()
async def test_a_slow_refresh_holds_up_no_command(world: World) -> None:
    client = world.open_connection()
    connecting = asyncio.get_running_loop().create_task(
        client.connect(auth_method="slow", auth_data=b"x", refreshes_credentials=True)
    )
    await asyncio.sleep(1)
    slow_of(world).waiting.pop().set_result(Principal("ann", now_s(world) + 100))
    await connecting
    await asyncio.sleep(55)
    assert client.challenges_count == 1
    client.write(frames.auth_response("slow", b"y"))
    await asyncio.sleep(1)
    await client.producer(TOPIC)
    slow_of(world).waiting.pop().set_exception(UncheckedCredentialsError("no key server"))
    await asyncio.sleep(25)
    assert client.is_open
    assert client.challenges_count == 2, "it is asked again"
    client.write(frames.auth_response("slow", b"z"))
    await asyncio.sleep(1)
    slow_of(world).waiting.pop().set_result(Principal("ann"))
    await asyncio.sleep(200)
    assert client.is_open
    assert sessions_count(world) == 0


@authenticated(limit_s=100_000)
async def test_thousands_of_tokens_that_lapse_together(world: World) -> None:
    """As when all clients got theirs from one job. None is lost, and each answers once."""
    token_of_all = [token_of("ann", now_s(world) + 300)]
    clients = [await world.connect(token=lambda: token_of_all[0]) for _ in range(300)]
    token_of_all[0] = token_of("ann", now_s(world) + 100_000)
    await asyncio.sleep(300)
    assert all(client.is_open and client.challenges_count == 1 for client in clients)
    authentication = world.broker.authentication
    assert authentication is not None
    assert authentication.counts == {("token", SUCCESS): 600}
    assert ("token", FAILURE) not in authentication.counts


@authenticated()
async def test_a_revoked_client_may_not_connect_and_its_connection_ends(world: World) -> None:
    client = await world.connect(**token("ann"))
    other = await world.connect(**token("bob"))
    await set_dynamic(world, "headgateRevokedRoles", "ann")
    await asyncio.sleep(1)
    assert [client.is_open, other.is_open] == [False, True]
    with pytest.raises(RefusedError) as refusal:
        await world.connect(**token("ann"))
    assert refusal.value.code == ServerError.AUTHENTICATION_ERROR
    authentication = world.broker.authentication
    assert authentication is not None
    assert authentication.counts["token", FAILURE] == 1


@authenticated()
async def test_who_is_revoked_while_its_credentials_are_checked_is_not_let_in(world: World) -> None:
    slow = slow_of(world)
    connecting = asyncio.ensure_future(world.connect(auth_method="slow", auth_data=b"ann"))
    while not slow.waiting:
        await asyncio.sleep(0.01)
    await set_dynamic(world, "headgateRevokedTokenIds", "t1")
    await asyncio.sleep(2)
    slow.waiting[0].set_result(Principal("ann", None, "t1"))
    with pytest.raises(RefusedError) as refusal:
        await connecting
    assert refusal.value.code == ServerError.AUTHENTICATION_ERROR


@authenticated()
async def test_a_token_that_is_revoked_by_its_id_ends_its_connection_alone(world: World) -> None:
    slow = slow_of(world)
    clients = []
    for number in range(2):
        connecting = asyncio.ensure_future(world.connect(auth_method="slow", auth_data=b"ann"))
        while len(slow.waiting) == number:
            await asyncio.sleep(0.01)
        slow.waiting[number].set_result(Principal("ann", None, f"t{number}"))
        clients.append(await connecting)
    await set_dynamic(world, "headgateRevokedTokenIds", "t1")
    await asyncio.sleep(1)
    assert [client.is_open for client in clients] == [True, False]


def test_refused_handshakes_have_the_bounded_lines_of_authentication_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each CONNECT with a foreign original principal wrote a line of its own."""

    @authenticated(settings={"anonymousUserRole": "anyone"})
    async def story(world: World) -> None:
        for _ in range(40):
            client = world.open_connection()
            with pytest.raises(RefusedError):
                await client.connect(original_principal="x")

    with caplog.at_level(logging.INFO):
        story()
    lines = [each for each in caplog.records if each.name.startswith("headgate.connection")]
    assert len(lines) <= 2
