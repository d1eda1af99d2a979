"""The provider of OpenID Connect: Pulsar's ``AuthenticationProviderOpenID``.

A token whose key is cached is checked at once. Otherwise the client waits for a fetch of its
issuer's keys; all clients of an issuer wait for the same one, so that thousands that connect at
once cause one request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from headgate.app.issuer_http import FetchError, fetch_bounds, trust_context
from headgate.app.openid_fetch import Fetch, fetch_keys
from headgate.base.clock import Clock
from headgate.base.errors import InputError, InvariantError
from headgate.base.units import NS_PER_S
from headgate.broker.connection.bounds import HANDSHAKE_TIMEOUT_S
from headgate.policy.setting_info import names_of
from headgate.policy.settings import Settings
from headgate.security.errors import CredentialsError, UncheckedCredentialsError
from headgate.security.jwks import check_issuer_url
from headgate.security.key_cache import Answer, CachedKeys, CacheTimes
from headgate.security.openid import (
    OpenIdRules,
    OpenIdToken,
    checked_claims,
    opened,
    principal_of,
)
from headgate.security.provider import Credentials, Principal
from headgate.security.token_keys import TokenKey
from headgate.storage.lanes import Lane, ThreadLane, run_on
from headgate.storage.repeated_failures import RepeatedFailureLogger

logger = logging.getLogger("headgate.authentication")

T = TypeVar("T")
Read = Callable[[OpenIdToken, Sequence[TokenKey], float], T]
"""Checks a token with keys of its issuer at an instant (seconds since the epoch)."""

METHOD: Final = "token"
"""Pulsar's OAuth2 clients present their tokens under this name."""

_KEY_ID_SHOWN_MAX: Final = 80

CLIENTS_WAITING_MAX: Final = 10_000
"""Clients that wait for keys at the same time; more are refused."""

_ANSWER_S: Final = 1.0
"""What is left of a handshake for the answer to a client that waited in vain."""

WOKEN_MAX: Final = 8
"""Clients whose tokens are checked in one iteration of the loop when their key has come: a
millisecond or two of signatures."""


class _Issuer:
    """One allowed issuer: its cached keys, and the fetch that runs with those who wait for it."""

    def __init__(self, name: str, times: CacheTimes) -> None:
        self.name = name
        self.cache = CachedKeys(times)
        self.lane: Lane | None = None
        """Made with the first fetch. Each issuer has one, so that none waits for another."""
        self.fetch: asyncio.Task[None] | None = None
        """The fetch that runs; None if none does."""
        self.waiting: dict[asyncio.Future[None], None] = {}
        """Those who wait, the first one first."""
        self.failures = RepeatedFailureLogger(logger, f"fetching the keys of {name}")


class OpenIdProvider:
    """Finds out who presents a token of an OpenID Connect issuer."""

    method = METHOD

    def __init__(
        self,
        rules: OpenIdRules,
        times: CacheTimes,
        fetch: Fetch,
        clock: Clock,
        new_lane: Callable[[str], Lane],
        wait_s: float,
    ) -> None:
        """``fetch`` blocks, and runs on a lane that ``new_lane`` makes for an issuer; a client
        waits for it for ``wait_s``."""
        self._rules = rules
        self._fetch = fetch
        self._clock = clock
        self._new_lane = new_lane
        self._wait_s = wait_s
        self._issuers = {name: _Issuer(name, times) for name in sorted(rules.issuers)}
        self._waiting_count = 0

    def principal(
        self, credentials: Credentials, now_s: float
    ) -> Principal | Coroutine[Any, Any, Principal]:
        token = opened(credentials.data, self._rules)
        return self._read(token, partial(_principal, self._rules), now_s)

    async def principal_by(self, text: str, rules: OpenIdRules, now_s: float) -> Principal:
        """Who a token speaks for by other rules, whose issuers are among the provider's.

        Raises:
            CredentialsError: as :meth:`principal`.
        """
        found = self._read(opened(text, rules), partial(_principal, rules), now_s)
        return found if isinstance(found, Principal) else await found

    async def claims(self, text: str, rules: OpenIdRules, now_s: float) -> Mapping[str, Any]:
        """What a token says, by other rules, whose issuers are among the provider's.

        Raises:
            CredentialsError: as :meth:`principal`, but that it may have no role.
        """
        found = self._read(opened(text, rules), partial(_claims, rules), now_s)
        return await found if isinstance(found, Coroutine) else found

    def _read(self, token: OpenIdToken, read: Read[T], now_s: float) -> T | Coroutine[Any, Any, T]:
        issuer = self._issuers[token.issuer]
        now_ns = self._clock.monotonic_ns()
        answer = issuer.cache.answer(token.key_id, now_ns)
        if answer is Answer.FETCH:
            return self._read_later(token, issuer, read, now_s, now_ns)
        if answer is Answer.USE_AND_FETCH:
            self._begin_fetch(issuer)
        return self._checked(token, issuer, read, now_s, now_ns, has_looked=False)

    def close(self) -> None:
        """End the fetches that run, without waiting for their threads. Clients that wait for them
        are refused."""
        for issuer in self._issuers.values():
            if issuer.fetch is not None:
                issuer.fetch.cancel()
            if issuer.lane is not None:
                issuer.lane.abandon()

    async def _read_later(
        self, token: OpenIdToken, issuer: _Issuer, read: Read[T], now_s: float, now_ns: int
    ) -> T:
        self._begin_fetch(issuer)  # also if too many wait, perhaps for another issuer
        # Here and not before the coroutine is made: many are made before the first one counts.
        if self._waiting_count >= CLIENTS_WAITING_MAX:
            raise UncheckedCredentialsError(f"too many clients wait for the keys of {issuer.name}")
        arrived = asyncio.get_running_loop().create_future()
        issuer.waiting[arrived] = None
        self._waiting_count += 1
        try:
            # The fetch goes on if this client leaves, or has waited long enough.
            await asyncio.wait([arrived], timeout=self._wait_s)
        finally:
            self._waiting_count -= 1
            issuer.waiting.pop(arrived, None)
        after_ns = self._clock.monotonic_ns()
        after_s = now_s + (after_ns - now_ns) / NS_PER_S
        return self._checked(token, issuer, read, after_s, after_ns, has_looked=True)

    def _checked(
        self,
        token: OpenIdToken,
        issuer: _Issuer,
        read: Read[T],
        now_s: float,
        now_ns: int,
        *,
        has_looked: bool,
    ) -> T:
        """What ``read`` finds with the cached keys. ``has_looked``: they were fetched for it."""
        keys = issuer.cache.keys(token.key_id, now_ns)
        if keys:
            return read(token, keys, now_s)
        what = f"there is no key for a token of {issuer.name}: "
        if issuer.fetch is not None:
            raise UncheckedCredentialsError(f"{what}fetching the keys takes too long")
        if issuer.cache.error:
            raise UncheckedCredentialsError(what + issuer.cache.error)
        unknown = f"{what}it has no key {token.key_id[:_KEY_ID_SHOWN_MAX]!r}"
        if not has_looked:
            # The issuer may have a new key since the last look, for which anybody could ask.
            raise UncheckedCredentialsError(f"{unknown} that is known yet")
        raise CredentialsError(unknown)

    def _begin_fetch(self, issuer: _Issuer) -> None:
        """Fetch the keys of an issuer, unless a fetch runs."""
        if issuer.fetch is not None:
            return
        if issuer.lane is None:
            issuer.lane = self._new_lane(issuer.name)
        work = self._fetch_into_cache(issuer, issuer.lane)
        issuer.fetch = asyncio.get_running_loop().create_task(work)
        issuer.fetch.add_done_callback(partial(self._fetch_ended, issuer))

    async def _fetch_into_cache(self, issuer: _Issuer, lane: Lane) -> None:
        began_ns = self._clock.monotonic_ns()
        try:
            keys = await run_on(lane, partial(self._fetch, issuer.name))
        except InvariantError:
            raise
        except Exception as error:
            now_ns = self._clock.monotonic_ns()
            is_expected = isinstance(error, FetchError)
            issuer.cache.failed(str(error) if is_expected else "internal error", now_ns)
            issuer.failures.failed(error, now_ns)
        else:
            now_ns = self._clock.monotonic_ns()
            issuer.cache.fetched(keys, began_ns, now_ns)
            issuer.failures.succeeded(now_ns)
            logger.info("%s has keys for tokens: %d", issuer.name, len(keys))

    def _fetch_ended(self, issuer: _Issuer, task: asyncio.Task[None]) -> None:
        issuer.fetch = None
        self._wake_some(issuer, task.get_loop())
        if not task.cancelled() and (error := task.exception()) is not None:
            task.get_loop().call_exception_handler(
                {"message": "a fetch of keys ended", "exception": error, "task": task}
            )

    def _wake_some(self, issuer: _Issuer, loop: asyncio.AbstractEventLoop) -> None:
        """Wake those that wait, a few in each iteration of the loop."""
        for arrived in list(islice(issuer.waiting, WOKEN_MAX)):
            del issuer.waiting[arrived]
            arrived.set_result(None)
        if issuer.waiting:
            loop.call_soon(self._wake_some, issuer, loop)


def _principal(
    rules: OpenIdRules, token: OpenIdToken, keys: Sequence[TokenKey], now_s: float
) -> Principal:
    return principal_of(token, keys, rules, now_s)


def _claims(
    rules: OpenIdRules, token: OpenIdToken, keys: Sequence[TokenKey], now_s: float
) -> Mapping[str, Any]:
    return checked_claims(token, keys, rules, now_s)


def open_id_provider(settings: Settings, clock: Clock) -> OpenIdProvider:
    """The provider by the settings. Blocks for a moment: it reads the authorities.

    Raises:
        InputError: settings that it needs are missing or not allowed: all of them.
    """
    rules = open_id_rules(settings)
    bounds = fetch_bounds(settings)
    trust_context(bounds.trust_path)
    times = CacheTimes(
        settings.openIDCacheRefreshAfterWriteSeconds * NS_PER_S,
        settings.openIDCacheExpirationSeconds * NS_PER_S,
        settings.openIDKeyIdCacheMissRefreshSeconds * NS_PER_S,
    )
    return OpenIdProvider(
        rules,
        times,
        partial(fetch_keys, bounds=bounds),
        clock,
        lambda _: ThreadLane(asyncio.get_running_loop(), "headgate-openid"),
        min(bounds.total_s, HANDSHAKE_TIMEOUT_S - _ANSWER_S),
    )


def open_id_rules(settings: Settings) -> OpenIdRules:
    """What is asked of tokens, by the settings.

    Raises:
        InputError: settings that it needs are missing or not allowed: all of them.
    """
    issuers = names_of(settings.openIDAllowedTokenIssuers)
    audiences = names_of(settings.openIDAllowedAudiences)
    problems = [
        f"{key} is empty: AuthenticationProviderOpenID needs {what}"
        for key, what, names in (
            ("openIDAllowedTokenIssuers", "the URLs of issuers", issuers),
            ("openIDAllowedAudiences", "the audiences that tokens are for", audiences),
        )
        if not names
    ]
    for issuer in issuers:
        try:
            check_issuer_url(
                issuer,
                "openIDAllowedTokenIssuers",
                must_encrypt=settings.openIDRequireIssuersUseHttps,
            )
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    return OpenIdRules(
        frozenset(issuers),
        audiences,
        settings.openIDRoleClaim,
        settings.openIDAcceptedTimeLeewaySeconds,
    )
