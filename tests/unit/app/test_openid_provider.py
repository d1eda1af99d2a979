"""The provider in virtual time: who waits for a fetch, how often an issuer is asked, rotation."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from headgate.app.issuer_http import FetchError
from headgate.app.openid_provider import (
    CLIENTS_WAITING_MAX,
    WOKEN_MAX,
    OpenIdProvider,
    open_id_provider,
    open_id_rules,
)
from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.policy.settings import Settings
from headgate.security.errors import CredentialsError, UncheckedCredentialsError
from headgate.security.jwks import keys_of
from headgate.security.key_cache import CacheTimes, Keys
from headgate.security.openid import OpenIdRules
from headgate.security.provider import Credentials, Principal
from headgate.security.token_keys import SigningKey
from headgate.testing.clock import ManualClock
from headgate.testing.lanes import SimLane
from headgate.testing.loop import SimLoop
from tests.unit.security.jwks_examples import (
    AUDIENCE,
    ISSUER,
    NOW_S,
    jwk,
    key_set,
    signing_key,
    token,
)

OTHER = "https://other.example"
TIMES = CacheTimes(100 * NS_PER_S, 200 * NS_PER_S, 30 * NS_PER_S)
FETCH_S = 2.0
WAIT_S = 5.0


class FakeIssuer:
    """Answers a fetch after :data:`FETCH_S`."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.keys: dict[str, SigningKey] = {"k1": signing_key()}
        self.is_down = False
        self.asked: list[str] = []
        self.lanes: list[SimLane] = []

    def fetch(self, issuer: str) -> Keys:
        self.asked.append(issuer)
        if self.is_down:
            raise FetchError(f"{issuer}: Connection refused")
        return keys_of(key_set(*(jwk(key, name) for name, key in self.keys.items())))

    def new_lane(self, _: str) -> SimLane:
        latency_ns = int(FETCH_S * NS_PER_S)
        lane = SimLane(
            self.loop, random.Random(1), latency_ns_min=latency_ns, latency_ns_max=latency_ns
        )
        self.lanes.append(lane)
        return lane


class Scene:
    """A provider with its issuers, and clients that present tokens."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.issuer = FakeIssuer(loop)
        rules = OpenIdRules(frozenset([ISSUER, OTHER]), (AUDIENCE,))
        self.provider = OpenIdProvider(
            rules, TIMES, self.issuer.fetch, loop.clock, self.issuer.new_lane, WAIT_S
        )
        self.began_s = loop.time()

    def ask(self, text: str) -> Principal | Coroutine[Any, Any, Principal]:
        now_s = NOW_S + self.loop.time() - self.began_s
        return self.provider.principal(Credentials("token", text.encode()), now_s)

    async def role(self, text: str) -> str:
        found = self.ask(text)
        return (found if isinstance(found, Principal) else await found).role

    def valid(self, key_id: str = "k1", **changed: Any) -> str:
        key = self.issuer.keys.get(key_id, signing_key())
        return token(key, key_id, exp=NOW_S + 9_999, **changed)

    async def refusal(self, text: str) -> str:
        with pytest.raises(CredentialsError) as caught:
            await self.role(text)
        assert not isinstance(caught.value, UncheckedCredentialsError)
        return str(caught.value)

    async def unchecked(self, text: str) -> str:
        """A refusal after which the client should try again: its token may be good."""
        with pytest.raises(UncheckedCredentialsError) as caught:
            await self.role(text)
        return str(caught.value)


def played(story: Callable[[Scene], Awaitable[None]]) -> Callable[[], None]:
    def test() -> None:
        loop = SimLoop()
        try:
            scene = Scene(loop)
            loop.run_until_complete(story(scene))  # type: ignore[arg-type]
            loop.raise_failure()
        finally:
            loop.close()

    test.__name__, test.__doc__ = story.__name__, story.__doc__
    return test


@played
async def test_the_first_client_waits_and_the_next_one_does_not(scene: Scene) -> None:
    assert not scene.issuer.asked  # nothing is fetched before somebody needs it
    assert await scene.role(scene.valid()) == "app"
    assert scene.loop.time() - scene.began_s == pytest.approx(FETCH_S)
    found = scene.ask(scene.valid(sub="b"))
    assert isinstance(found, Principal)
    assert found.role == "b"
    assert scene.issuer.asked == [ISSUER]


@played
async def test_thousands_wait_for_one_fetch_and_are_woken_in_turns(scene: Scene) -> None:
    text, turns, is_first_done = scene.valid(), [], asyncio.Event()

    async def client() -> str:
        role = await scene.role(text)
        turns.append(turn_number)
        is_first_done.set()
        return role

    turn_number = 0
    tasks = [asyncio.create_task(client()) for _ in range(1_000)]
    await is_first_done.wait()
    while not all(task.done() for task in tasks):
        turn_number += 1
        await asyncio.sleep(0)
    assert {task.result() for task in tasks} == {"app"}
    assert scene.issuer.asked == [ISSUER]
    assert max(map(turns.count, turns)) <= 3 * WOKEN_MAX


@played
async def test_too_many_that_wait_are_refused(scene: Scene) -> None:
    text = scene.valid()
    tasks = [asyncio.create_task(scene.role(text)) for _ in range(CLIENTS_WAITING_MAX)]
    await asyncio.sleep(0)
    assert "too many clients wait" in await scene.unchecked(text)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    # Those that left have made room, and the fetch went on.
    assert await scene.role(text) == "app"
    assert scene.issuer.asked == [ISSUER]


@played
async def test_those_that_wait_for_one_issuer_keep_the_keys_of_no_other_away(scene: Scene) -> None:
    """Anybody can name an issuer that does not answer."""
    text = scene.valid(iss=OTHER)
    tasks = [asyncio.create_task(scene.role(text)) for _ in range(CLIENTS_WAITING_MAX)]
    await asyncio.sleep(FETCH_S / 2)
    assert "too many clients wait" in await scene.unchecked(scene.valid())
    await asyncio.gather(*tasks)
    await asyncio.sleep(FETCH_S)
    began_s = scene.loop.time()
    assert await scene.role(scene.valid()) == "app"
    assert scene.loop.time() == began_s


@played
async def test_nothing_is_fetched_for_what_cannot_be_accepted(scene: Scene) -> None:
    assert "openIDAllowedTokenIssuers" in await scene.refusal(scene.valid(iss="https://evil"))
    assert "three parts" in await scene.refusal("no token")
    assert not scene.issuer.asked


@played
async def test_keys_are_rotated_without_a_restart(scene: Scene) -> None:
    old = scene.valid()
    assert await scene.role(old) == "app"
    scene.issuer.keys["k2"] = signing_key("ES256")
    new = scene.valid("k2")
    # A moment ago the issuer had no such key.
    assert "no key 'k2' that is known yet" in await scene.unchecked(new)
    await asyncio.sleep(30)
    assert await scene.role(new) == await scene.role(old) == "app"
    del scene.issuer.keys["k1"]
    await asyncio.sleep(100)
    assert await scene.role(old) == "app"  # and causes a fetch
    await asyncio.sleep(2 * FETCH_S)
    assert "no key 'k1'" in await scene.unchecked(old)
    assert await scene.role(new) == "app"
    assert len(scene.issuer.asked) == 3


@played
async def test_a_storm_of_unknown_keys_asks_once_in_a_period(scene: Scene) -> None:
    final_count = 0
    for number in range(600):
        await asyncio.sleep(0.1)
        with pytest.raises(CredentialsError, match="has no key 'x") as caught:
            await scene.role(scene.valid(f"x{number}"))
        # Only a token for which the keys were fetched is refused for good.
        final_count += not isinstance(caught.value, UncheckedCredentialsError)
    assert len(scene.issuer.asked) == final_count == 3  # at 0, 30 and 60 s
    assert await scene.role(scene.valid()) == "app"


@played
async def test_a_refresh_lets_nobody_wait(scene: Scene) -> None:
    await scene.role(scene.valid())
    await asyncio.sleep(100)
    assert isinstance(scene.ask(scene.valid()), Principal)
    assert isinstance(scene.ask(scene.valid()), Principal)
    await asyncio.sleep(FETCH_S + 1)
    assert scene.issuer.asked == [ISSUER, ISSUER]


@played
async def test_keys_serve_while_their_issuer_is_down(scene: Scene) -> None:
    await scene.role(scene.valid())
    scene.issuer.is_down = True
    for _ in range(199):
        await asyncio.sleep(1)
        if scene.loop.time() - scene.began_s < 200:
            assert isinstance(scene.ask(scene.valid()), Principal)
    asked_count = len(scene.issuer.asked)
    assert 2 < asked_count < 12  # once in a pause of ten seconds
    await asyncio.sleep(20)
    assert "Connection refused" in await scene.unchecked(scene.valid())
    scene.issuer.is_down = False
    await asyncio.sleep(10)
    assert await scene.role(scene.valid()) == "app"


def test_a_dead_issuer_is_logged_once_and_asked_after_a_pause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @played
    async def story(scene: Scene) -> None:
        scene.issuer.is_down = True
        for _ in range(50):
            assert "Connection refused" in await scene.unchecked(scene.valid())
        assert len(scene.issuer.asked) == 1
        for _ in range(3):
            await asyncio.sleep(10)
            assert "Connection refused" in await scene.unchecked(scene.valid())
        scene.issuer.is_down = False
        await asyncio.sleep(10)
        assert await scene.role(scene.valid()) == "app"

    with caplog.at_level(logging.WARNING):
        story()
    assert [record.getMessage() for record in caplog.records] == [
        f"fetching the keys of {ISSUER} fails: {ISSUER}: Connection refused",
        f"fetching the keys of {ISSUER} works again, after 4 failures",
    ]


@played
async def test_a_hanging_issuer_holds_up_its_own_clients_only(scene: Scene) -> None:
    hanging = asyncio.create_task(scene.unchecked(scene.valid()))
    await asyncio.sleep(0)
    scene.issuer.lanes[0].freeze()
    assert await scene.role(scene.valid(iss=OTHER)) == "app"
    assert "takes too long" in await hanging
    assert scene.loop.time() - scene.began_s == pytest.approx(WAIT_S)
    # The next one waits for the same fetch: no second thread hangs, and nothing piles up.
    assert "takes too long" in await scene.unchecked(scene.valid())
    assert len(scene.issuer.lanes) == 2
    assert not scene.provider._issuers[ISSUER].waiting
    scene.issuer.lanes[0].thaw()
    await asyncio.sleep(FETCH_S)
    assert await scene.role(scene.valid()) == "app"


@played
async def test_time_passes_while_a_client_waits(scene: Scene) -> None:
    text = token(signing_key(), exp=NOW_S + FETCH_S - 1)
    assert "expired" in await scene.refusal(text)


@played
async def test_an_unexpected_error_refuses_and_is_logged(scene: Scene) -> None:
    task = asyncio.create_task(scene.unchecked(scene.valid()))
    await asyncio.sleep(0)
    scene.issuer.lanes[0].fail_next(RuntimeError("a defect"))
    assert "internal error" in await task


@played
async def test_the_end_of_the_broker_refuses_those_that_wait(scene: Scene) -> None:
    task = asyncio.create_task(scene.refusal(scene.valid()))
    await asyncio.sleep(0.1)
    scene.provider.close()
    assert "has no key" in await task


# Settings -----------------------------------------------------------------------------------------


def settings(**changed: Any) -> Settings:
    found = Settings(openIDAllowedTokenIssuers=f" {ISSUER} ,{OTHER}", openIDAllowedAudiences="a, b")
    for name, value in changed.items():
        setattr(found, name, value)
    return found


def test_the_rules_by_the_settings() -> None:
    rules = open_id_rules(settings(openIDRoleClaim="groups", openIDAcceptedTimeLeewaySeconds=7))
    assert rules == OpenIdRules(frozenset([ISSUER, OTHER]), ("a", "b"), "groups", 7)
    provider = open_id_provider(settings(), ManualClock())
    assert provider.method == "token"
    provider.close()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"openIDAllowedTokenIssuers": " , "}, "openIDAllowedTokenIssuers is empty"),
        ({"openIDAllowedAudiences": ""}, "openIDAllowedAudiences is empty"),
        ({"openIDAllowedTokenIssuers": "http://a"}, "'http://a' is not encrypted"),
        ({"openIDAllowedTokenIssuers": "issuer"}, "'issuer' is no URL"),
        ({"openIDTokenIssuerTrustCertsFilePath": "/no/such"}, "cannot be used: No such file"),
    ],
)
def test_settings_that_are_refused(changed: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        open_id_provider(settings(**changed), ManualClock())


def test_an_issuer_in_plain_text_by_a_setting() -> None:
    allowed = settings(openIDAllowedTokenIssuers="http://a", openIDRequireIssuersUseHttps=False)
    assert open_id_rules(allowed).issuers == {"http://a"}
