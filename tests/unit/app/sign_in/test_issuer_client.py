"""What the issuer is asked, which of its tokens a reader gets, and how long anybody waits."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from headgate.app.sign_in.issuer_client import (
    EXCHANGES_MAX,
    EXCHANGES_PER_ADDRESS_MAX,
    UnavailableIssuerError,
)
from headgate.base.units import NS_PER_S
from headgate.security.code_flow import SignInError
from headgate.security.key_cache import FAILURE_PAUSE_NS
from headgate.security.tokens import claims_of
from tests.unit.app.sign_in.signing_in import (
    CLIENT,
    ENDPOINTS,
    OTHER,
    REFRESH_S,
    WAIT_S,
    Scene,
    played,
)
from tests.unit.security.jwks_examples import AUDIENCE, ISSUER

SECRET = "s3cret-of-the-client"


@played
async def test_a_code_becomes_the_access_token(scene: Scene) -> None:
    found = await scene.client.signed_in(scene.sign_in())
    assert found.principal.role == "ann"
    assert claims_of(found.token)["aud"] == AUDIENCE
    assert found.token not in repr(found)
    ((url, form, headers),) = scene.issuer.posted
    assert url == ENDPOINTS.token_url
    assert form == {
        "grant_type": ["authorization_code"], "code": ["the code"], "code_verifier": ["v"],
        "redirect_uri": [CLIENT.redirect_url], "client_id": ["page"],
    }  # fmt: skip
    assert "Authorization" not in headers


@played
async def test_the_secret_is_read_for_each_exchange(scene: Scene) -> None:
    for secret in ("one", "two"):
        scene.secret = secret
        await scene.client.signed_in(scene.sign_in())
    assert len({headers["Authorization"] for _, _, headers in scene.issuer.posted}) == 2


@played
async def test_the_id_token_where_the_access_token_is_for_others(scene: Scene) -> None:
    """Some issuers give access tokens that only they can read."""
    scene.issuer.id["aud"] = ["page", AUDIENCE]
    scene.issuer.access["aud"] = "elsewhere"
    found = await scene.client.signed_in(scene.sign_in())
    assert claims_of(found.token)["nonce"] == "n"
    tokens = json.loads(scene.issuer.tokens())
    scene.issuer.document = json.dumps({**tokens, "access_token": "opaque"}).encode()
    assert (await scene.client.signed_in(scene.sign_in())).principal.role == "ann"


@pytest.mark.parametrize(
    ("about", "changed", "why"),
    [
        ("id", {"aud": "another client"}, "does not have 'page'"),
        ("id", {"nonce": "of another sign-in"}, "nonce differs"),
        ("id", {"azp": "another client"}, "another client"),
        # Another issuer that the operator allows, too: it may not answer for this one.
        ("id", {"iss": OTHER}, "is not in openIDAllowedTokenIssuers"),
        ("id", {"exp": 1.0}, "expired"),
        ("access", {"iss": OTHER}, "is not in openIDAllowedTokenIssuers"),
        ("access", {"aud": "elsewhere"}, f"does not have '{AUDIENCE}'"),
        ("access", {"exp": 1.0}, "expired"),
        ("access", {"sub": "\x00"}, "has no role"),
    ],
)
def test_a_token_that_the_broker_does_not_accept(
    caplog: pytest.LogCaptureFixture, about: str, changed: dict[str, Any], why: str
) -> None:
    @played
    async def story(scene: Scene) -> None:
        if "nonce" in changed:
            sign_in = scene.sign_in()
            scene.issuer.nonce = changed["nonce"]
        else:
            sign_in = scene.sign_in()
            getattr(scene.issuer, about).update(changed)
        with pytest.raises(SignInError) as refusal:
            await scene.client.signed_in(sign_in)
        assert str(refusal.value) == (
            f"The broker does not accept the token of {ISSUER}; its log says why"
        )

    story()
    assert why in caplog.text
    assert "eyJ" not in caplog.text


def test_a_key_that_the_issuer_does_not_publish(caplog: pytest.LogCaptureFixture) -> None:
    @played
    async def story(scene: Scene) -> None:
        scene.issuer.key_name = ("RS256", "another")
        with pytest.raises(SignInError, match="does not accept"):
            await scene.client.signed_in(scene.sign_in())

    story()
    assert "signed by another key" in caplog.text


@pytest.mark.parametrize(
    ("status", "document", "shown"),
    [
        (400, b'{"error": "invalid_grant"}', "does not exchange the code: invalid_grant$"),
        (401, b'{"error": "SECRET"}', "does not exchange the code: status 401$"),
        (200, b"SECRET", "does not exchange the code: the broker's log says why$"),
        (200, b"{}", "does not exchange the code: the broker's log says why$"),
        (302, b"", "does not exchange the code: the broker's log says why$"),
    ],
)
def test_a_token_endpoint_that_lies_repeats_no_secret(
    caplog: pytest.LogCaptureFixture, status: int, document: bytes, shown: str
) -> None:
    caplog.set_level(logging.DEBUG)

    @played
    async def story(scene: Scene) -> None:
        scene.secret = SECRET
        scene.issuer.status = status
        scene.issuer.document = document.replace(b"SECRET", SECRET.encode())
        with pytest.raises(SignInError, match=shown) as refusal:
            await scene.client.signed_in(scene.sign_in())
        assert SECRET not in str(refusal.value)

    story()
    assert f"signing in at {ISSUER} fails" in caplog.text
    for hidden in (SECRET, "the code"):
        assert hidden not in caplog.text.replace("exchange the code", "")


# Time ---------------------------------------------------------------------------------------------


@played
async def test_all_wait_for_one_fetch_of_the_endpoints(scene: Scene) -> None:
    found = await asyncio.gather(*(scene.client.endpoints() for _ in range(100)))
    assert set(found) == {ENDPOINTS}
    assert scene.issuer.fetched == [ISSUER]
    await asyncio.sleep(REFRESH_S)
    # Nobody waits for later ones, also while the issuer is down.
    scene.issuer.is_down = True
    began_s = scene.loop.time()
    for _ in range(3):
        assert await scene.client.endpoints() == ENDPOINTS
    assert scene.loop.time() == began_s
    await asyncio.sleep(1)
    assert len(scene.issuer.fetched) == 2
    assert await scene.client.endpoints() == ENDPOINTS


@played
async def test_a_dead_issuer_is_asked_every_ten_seconds(scene: Scene) -> None:
    scene.issuer.is_down = True
    for _ in range(50):
        with pytest.raises(UnavailableIssuerError, match="does not answer: the broker's log"):
            await scene.client.endpoints()
    assert len(scene.issuer.fetched) == 1
    scene.issuer.is_down = False
    await asyncio.sleep(FAILURE_PAUSE_NS / NS_PER_S)
    assert await scene.client.endpoints() == ENDPOINTS


@played
async def test_nobody_waits_for_ever(scene: Scene) -> None:
    scene.issuer.latency_s = 60.0
    for _ in range(2):
        began_s = scene.loop.time()
        with pytest.raises(UnavailableIssuerError, match="does not answer"):
            await scene.client.endpoints()
        assert scene.loop.time() - began_s == pytest.approx(WAIT_S)
    await asyncio.sleep(200)
    assert len(scene.issuer.fetched) == 1


@played
async def test_a_slow_exchange_is_given_up_and_those_behind_it_are_not_sent(scene: Scene) -> None:
    await scene.client.endpoints()
    scene.issuer.set_latency(4.0)
    tasks = [
        asyncio.create_task(scene.client.signed_in(scene.sign_in(f"192.0.2.{number}")))
        for number in range(EXCHANGES_MAX + 3)
    ]
    found = await asyncio.gather(*tasks, return_exceptions=True)
    texts = [str(each) for each in found]
    assert sum("too many sign-ins" in text for text in texts) == 3
    assert sum("takes too long" in text for text in texts) == EXCHANGES_MAX - 1
    await asyncio.sleep(60 * 4)
    # The first in time, the second too late; nothing is sent for those who had left before.
    assert 1 <= len(scene.issuer.posted) <= 2
    scene.issuer.set_latency(0.1)
    await scene.client.signed_in(scene.sign_in())


@played
async def test_one_address_does_not_take_the_places_of_others(scene: Scene) -> None:
    await scene.client.endpoints()
    tasks = [
        asyncio.create_task(scene.client.signed_in(scene.sign_in("192.0.2.1")))
        for _ in range(EXCHANGES_MAX)
    ]
    await asyncio.sleep(0)
    other = asyncio.create_task(scene.client.signed_in(scene.sign_in("192.0.2.2")))
    found = await asyncio.gather(*tasks, return_exceptions=True)
    refused = sum("too many sign-ins" in str(each) for each in found)
    assert refused == EXCHANGES_MAX - EXCHANGES_PER_ADDRESS_MAX
    assert (await other).principal.role == "ann"


@played
async def test_keys_that_do_not_come_are_part_of_the_same_wait(scene: Scene) -> None:
    await scene.client.endpoints()
    scene.issuer.set_latency(WAIT_S - 1)
    scene.keys_lane.latency_ns_min = scene.keys_lane.latency_ns_max = 4 * NS_PER_S
    began_s = scene.loop.time()
    with pytest.raises(UnavailableIssuerError, match="takes too long"):
        await scene.client.signed_in(scene.sign_in())
    assert scene.loop.time() - began_s == pytest.approx(WAIT_S)
    await asyncio.sleep(10)
    await scene.client.signed_in(scene.sign_in())


@pytest.mark.parametrize("has_endpoints", [False, True])
def test_a_broker_that_closes_waits_for_nothing(has_endpoints: bool) -> None:
    @played
    async def story(scene: Scene) -> None:
        if has_endpoints:
            await scene.client.endpoints()
        task = asyncio.create_task(scene.client.signed_in(scene.sign_in()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        scene.client.close()
        with pytest.raises(UnavailableIssuerError):
            await task

    story()
