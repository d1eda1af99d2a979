"""The broker as a client of the issuer at which readers of the page sign in.

Requests block, so they run on a lane of their own, one after the other. Nobody waits longer than
``wait_s``: a slow issuer holds up only those who sign in there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from headgate.app.openid_provider import OpenIdProvider
from headgate.base.clock import Clock
from headgate.base.errors import InvariantError
from headgate.base.units import NS_PER_S
from headgate.security.code_flow import (
    Client,
    Endpoints,
    SignInError,
    Tokens,
    check_id_claims,
    token_request,
    tokens_of,
)
from headgate.security.errors import CredentialsError, UncheckedCredentialsError
from headgate.security.key_cache import FAILURE_PAUSE_NS
from headgate.security.openid import OpenIdRules
from headgate.security.provider import Principal
from headgate.security.sign_ins import SignIn
from headgate.storage.lanes import Lane, run_on
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.authentication")

EXCHANGES_MAX: Final = 32
"""Codes that are exchanged or wait for that; more readers are asked to try again."""

EXCHANGES_PER_ADDRESS_MAX: Final = 16
"""The same of one address, so that it does not take the places of all others."""

_LOG: Final = "the broker's log says why"

Post = Callable[[str, bytes, Mapping[str, str]], tuple[int, bytes]]
"""Posts a form to a URL: status and document of the answer. Blocks. Raises
:class:`~headgate.app.issuer_http.FetchError`."""


class UnavailableIssuerError(SignInError):
    """The issuer does not answer in time, or not as it should. Trying again later may help."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """How an issuer is asked. All functions block."""

    client: Client
    fetch: Callable[[str], Endpoints]
    post: Post
    secret: Callable[[], str]
    """Reads the client's secret; empty for a public client."""
    refresh_ns: int
    """The age from which the issuer's configuration is fetched again."""
    wait_s: float
    """How long a reader waits."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What a reader gets: a token that the broker accepts, and the role that it gives."""

    token: str = field(repr=False)
    principal: Principal


class IssuerClient:
    """Asks one issuer, and checks what it answers."""

    def __init__(
        self,
        issuer: Issuer,
        provider: OpenIdProvider,
        rules: OpenIdRules,
        clock: Clock,
        new_lane: Callable[[], Lane],
    ) -> None:
        """``provider`` has the keys of issuers; ``rules`` are its rules for tokens."""
        own = frozenset([issuer.client.issuer])
        self.client = issuer.client
        self._issuer = issuer
        self._provider = provider
        self._rules = OpenIdRules(own, rules.audiences, rules.role_claim, rules.leeway_s)
        self._id_rules = OpenIdRules(own, (self.client.client_id,), leeway_s=rules.leeway_s)
        self._clock = clock
        self._new_lane = new_lane
        self._lane: Lane | None = None
        self._endpoints: Endpoints | None = None
        self._fetched_ns = 0
        self._failed_ns: int | None = None
        self._fetch: asyncio.Task[None] | None = None
        self._exchanges: dict[asyncio.Task[Tokens], str] = {}
        """Each with the network of its browser."""
        self._failures = RepeatedFailureLogger(logger, f"signing in at {self.client.issuer}")

    async def endpoints(self) -> Endpoints:
        """The issuer's endpoints, from its configuration. All who need the first ones wait for one
        fetch; later ones are fetched beside them.

        Raises:
            UnavailableIssuerError: it has no such configuration, or does not answer in time.
        """
        if self._is_due(self._clock.monotonic_ns()) and self._fetch is None:
            self._fetch = asyncio.get_running_loop().create_task(self._fetch_endpoints())
        if self._endpoints is None and self._fetch is not None:
            await asyncio.wait([self._fetch], timeout=self._issuer.wait_s)
        if self._endpoints is None:
            raise self._unavailable("does not answer")
        return self._endpoints

    async def signed_in(self, sign_in: SignIn) -> SignedIn:
        """Exchange the code of a sign-in that has ended.

        Raises:
            UnavailableIssuerError: the issuer does not answer in time, or not as it should.
            SignInError: the issuer refuses, or gives no token that the broker accepts.
        """
        try:
            async with asyncio.timeout(self._issuer.wait_s):
                tokens = await self._exchanged(sign_in)
                found = await self._accepted(tokens, sign_in.nonce)
        except TimeoutError:
            slow = self._slow()
            self._failures.failed(slow, self._clock.monotonic_ns())
            raise slow from None
        except UncheckedCredentialsError as error:
            self._failures.failed(error, self._clock.monotonic_ns())
            raise self._unavailable("has no keys for its tokens") from None
        except CredentialsError as error:
            self._failures.failed(error, self._clock.monotonic_ns())
            raise SignInError(
                f"The broker does not accept the token of {self.client.issuer}; its log says why"
            ) from None
        self._failures.succeeded(self._clock.monotonic_ns())
        return found

    def close(self) -> None:
        """End what runs, without waiting for its thread."""
        for task in (self._fetch, *self._exchanges):
            if task is not None:
                task.cancel()
        if self._lane is not None:
            self._lane.abandon()

    # Asking ---------------------------------------------------------------------------------------

    def _is_due(self, now_ns: int) -> bool:
        """Whether the configuration is to be fetched."""
        if self._failed_ns is not None and now_ns - self._failed_ns < FAILURE_PAUSE_NS:
            return False
        return self._endpoints is None or now_ns - self._fetched_ns >= self._issuer.refresh_ns

    async def _fetch_endpoints(self) -> None:
        try:
            work = partial(self._issuer.fetch, self.client.issuer)
            self._endpoints = await run_on(self._open_lane(), work)
        except InvariantError:
            raise
        except Exception as error:
            self._failed_ns = self._clock.monotonic_ns()
            self._failures.failed(error, self._failed_ns)
        else:
            self._fetched_ns, self._failed_ns = self._clock.monotonic_ns(), None
        finally:
            self._fetch = None

    async def _exchanged(self, sign_in: SignIn) -> Tokens:
        endpoints = await self.endpoints()
        of_network = sum(each == sign_in.network for each in self._exchanges.values())
        if len(self._exchanges) >= EXCHANGES_MAX or of_network >= EXCHANGES_PER_ADDRESS_MAX:
            raise self._unavailable("has too many sign-ins to answer")
        until_ns = self._clock.monotonic_ns() + int(self._issuer.wait_s * NS_PER_S)
        work = partial(self._exchange, endpoints, sign_in.code, sign_in.verifier, until_ns)
        task = asyncio.get_running_loop().create_task(run_on(self._open_lane(), work))
        self._exchanges[task] = sign_in.network
        task.add_done_callback(self._exchange_ended)
        # The exchange goes on if the reader has waited long enough: its answer is for nobody then.
        await asyncio.wait([task])
        if task.cancelled():
            raise self._unavailable("is not asked any more")  # the broker closes
        try:
            return task.result()
        except (InvariantError, SignInError):
            raise
        except Exception:
            raise self._unavailable("does not exchange the code") from None

    def _exchange(self, endpoints: Endpoints, code: str, verifier: str, until_ns: int) -> Tokens:
        """On the lane."""
        if self._clock.monotonic_ns() >= until_ns:
            # Its reader has left, while others were before it.
            raise self._slow()
        body, headers = token_request(
            self.client, endpoints, code=code, verifier=verifier, secret=self._issuer.secret()
        )
        return tokens_of(*self._issuer.post(endpoints.token_url, body, headers))

    def _exchange_ended(self, task: asyncio.Task[Tokens]) -> None:
        self._exchanges.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, InvariantError):
            self._failures.failed(error, self._clock.monotonic_ns())

    def _open_lane(self) -> Lane:
        if self._lane is None:
            self._lane = self._new_lane()
        return self._lane

    # Checking -------------------------------------------------------------------------------------

    async def _accepted(self, tokens: Tokens, nonce: str) -> SignedIn:
        """The access token if the broker accepts it, otherwise the ID token."""
        now_s = self._clock.wall_ns() / NS_PER_S
        claims = await self._provider.claims(tokens.id_token, self._id_rules, now_s)
        check_id_claims(claims, self.client.client_id, nonce)
        try:
            principal = await self._provider.principal_by(tokens.access_token, self._rules, now_s)
            return SignedIn(tokens.access_token, principal)
        except UncheckedCredentialsError:
            raise
        except CredentialsError as error:
            reason = f"its access token: {error}"
        try:
            principal = await self._provider.principal_by(tokens.id_token, self._rules, now_s)
            return SignedIn(tokens.id_token, principal)
        except CredentialsError as error:
            raise CredentialsError(f"{reason}; its ID token: {error}") from None

    def _slow(self) -> UnavailableIssuerError:
        return self._unavailable("takes too long to exchange the code")

    def _unavailable(self, what: str) -> UnavailableIssuerError:
        return UnavailableIssuerError(f"{self.client.issuer} {what}: {_LOG}")
