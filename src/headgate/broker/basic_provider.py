"""Authentication by name and password, as Pulsar's ``AuthenticationProviderBasic``.

bcrypt takes about 50 ms, so passwords are checked on a lane of their own. At most
:data:`CHECKS_MAX` wait for it. Connections that present the same credentials share one check, and
those that come within a minute after it need none.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headgate.base.sparse_counter import SparseCounter
from headgate.broker.shared_result import SharedResult
from headgate.security.errors import CredentialsError, UncheckedCredentialsError
from headgate.security.failed_attempts import FailedAttempts, network_of
from headgate.security.password_cache import PasswordCache
from headgate.security.password_file import CREDENTIALS_BYTES_MAX, PasswordFile
from headgate.security.provider import Credentials, Principal
from headgate.storage.lanes import Lane, run_on

CHECKS_MAX: Final = 64
"""Passwords that may wait for their check. A client waits at most ten seconds for its answer, and
with bcrypt this many take about three."""


class BasicProvider:
    """Takes ``name:password``."""

    def __init__(
        self, file: PasswordFile, lane: Lane, cache: PasswordCache, attempts: FailedAttempts
    ) -> None:
        self.method = "basic"
        self._file = file
        self._lane = lane
        self._cache = cache
        self._attempts = attempts
        self._checks: dict[bytes, SharedResult[Principal]] = {}
        """Checks in progress, by digest."""
        self._checks_by_network: SparseCounter[str] = SparseCounter()

    def principal(
        self, credentials: Credentials, now_s: float
    ) -> Principal | asyncio.Future[Principal]:
        size_bytes = len(credentials.data)
        if size_bytes > CREDENTIALS_BYTES_MAX:
            raise CredentialsError(f"the credentials have {size_bytes:,} bytes")
        digest = self._cache.digest(credentials.data)
        known = self._cache.fresh(digest, now_s)
        if known is not None:
            return known
        check = self._checks.get(digest)
        if check is None:
            problem = self._why_not(credentials.address, now_s)
            if problem:
                known = self._cache.last_known(digest)
                if known is None:
                    raise UncheckedCredentialsError(problem)
                return known
            check = self._begin(digest, credentials, now_s)
        return check.join()

    def _why_not(self, address: str, now_s: float) -> str:
        """Why no further password is checked now; empty if one is."""
        if len(self._checks) >= CHECKS_MAX:
            return f"{CHECKS_MAX} other passwords wait for their check"
        in_progress = self._checks_by_network[network_of(address)]
        if self._attempts.passwords_left(address, now_s) <= in_progress:
            return "too many passwords of this address were wrong, or wait for their check"
        return ""

    def _begin(
        self, digest: bytes, credentials: Credentials, now_s: float
    ) -> SharedResult[Principal]:
        work = self._check(digest, credentials, now_s)
        check = self._checks[digest] = SharedResult(asyncio.get_running_loop().create_task(work))
        self._checks_by_network[network_of(credentials.address)] += 1
        return check

    async def _check(self, digest: bytes, credentials: Credentials, now_s: float) -> Principal:
        data, network = credentials.data, network_of(credentials.address)
        try:
            found = await run_on(self._lane, lambda: self._file.principal(data))
        except CredentialsError:
            self._attempts.password_failed(credentials.address, now_s)
            self._cache.was_wrong(digest)
            raise
        finally:
            del self._checks[digest]
            self._checks_by_network[network] -= 1
        self._cache.was_right(digest, found, now_s)
        return found
