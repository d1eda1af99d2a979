"""An issuer, the broker as its client, and time that passes only when the test waits."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from headgate.app.issuer_http import FetchError
from headgate.app.openid_provider import OpenIdProvider
from headgate.app.sign_in.issuer_client import Issuer, IssuerClient
from headgate.base.units import NS_PER_S
from headgate.security.code_flow import Client, Endpoints
from headgate.security.jwks import keys_of
from headgate.security.key_cache import CacheTimes, Keys
from headgate.security.openid import OpenIdRules
from headgate.security.sign_ins import SignIn
from headgate.testing.lanes import SimLane
from headgate.testing.loop import SimLoop
from tests.unit.security.jwks_examples import AUDIENCE, ISSUER, jwk, key_set, signing_key, token

OTHER = "https://other.example"
REFRESH_S = 100
WAIT_S = 5.0
CLIENT = Client(ISSUER, "page", "https://broker.example/p/headgate/sign-in/callback")
ENDPOINTS = Endpoints(f"{ISSUER}/auth", f"{ISSUER}/token", False, True)


class FakeIssuer:
    """What the issuer answers, and what it was asked."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.nonce = "n"
        self.latency_s = 0.1
        self.is_down = False
        self.access: dict[str, Any] = {}
        """Changed claims of the access token."""
        self.id: dict[str, Any] = {"aud": "page"}
        """The same of the ID token."""
        self.key_name: tuple[str, ...] = ()
        """With another one it signs with a key that it does not publish."""
        self.status = 200
        self.document: bytes | None = None
        """What the token endpoint answers, instead of tokens."""
        self.fetched: list[str] = []
        self.posted: list[tuple[str, dict[str, list[str]], Mapping[str, str]]] = []

    def fetch(self, issuer: str) -> Endpoints:
        self.fetched.append(issuer)
        if self.is_down:
            raise FetchError(f"{issuer}: Connection refused")
        return ENDPOINTS

    def fetch_keys(self, issuer: str) -> Keys:
        return keys_of(key_set(jwk(signing_key(), "k1")))

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        self.posted.append((url, parse_qs(body.decode()), headers))
        if self.is_down:
            raise FetchError(f"{url}: Connection refused")
        return self.status, self.document if self.document is not None else self.tokens()

    def tokens(self) -> bytes:
        access, id_token = self.token(**self.access), self.token(nonce=self.nonce, **self.id)
        found = {"access_token": access, "id_token": id_token, "token_type": "Bearer"}
        return json.dumps(found).encode()

    def token(self, **changed: Any) -> str:
        now_s = self._loop.clock.wall_ns() / NS_PER_S
        said = {"sub": "ann", "iat": now_s - 1, "exp": now_s + 300, **changed}
        return token(signing_key(*self.key_name), **said)

    def new_lane(self) -> SimLane:
        self.lane = SimLane(self._loop, random.Random(1))
        self.set_latency(self.latency_s)
        return self.lane

    def set_latency(self, latency_s: float) -> None:
        """How long each request takes from now on."""
        self.lane.latency_ns_min = self.lane.latency_ns_max = int(latency_s * NS_PER_S)


class Scene:
    """The issuer and its client."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.issuer = FakeIssuer(loop)
        self.secret = ""
        self.keys_lane = SimLane(loop, random.Random(2))
        rules = OpenIdRules(frozenset([ISSUER, OTHER]), (AUDIENCE,))
        times = CacheTimes(9_999 * NS_PER_S, 99_999 * NS_PER_S, 30 * NS_PER_S)
        self.provider = OpenIdProvider(
            rules,
            times,
            self.issuer.fetch_keys,
            loop.clock,
            lambda _: self.keys_lane,
            WAIT_S,
        )
        asked = Issuer(
            CLIENT, self.issuer.fetch, self.issuer.post, lambda: self.secret,
            REFRESH_S * NS_PER_S, WAIT_S,
        )  # fmt: skip
        self.client = IssuerClient(asked, self.provider, rules, loop.clock, self.issuer.new_lane)

    def sign_in(self, network: str = "") -> SignIn:
        """One whose code has come."""
        return SignIn("s", self.issuer.nonce, "v", b"", network, 0, code="the code")


def played(story: Callable[[Scene], Awaitable[None]]) -> Callable[[], None]:
    def test() -> None:
        loop = SimLoop()
        try:
            loop.run_until_complete(story(Scene(loop)))  # type: ignore[arg-type]
            loop.raise_failure()
        finally:
            loop.close()

    test.__name__, test.__doc__ = story.__name__, story.__doc__
    return test
