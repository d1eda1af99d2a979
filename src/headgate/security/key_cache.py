"""The law of one issuer's cached keys: when they serve, and when they are fetched again.

Time is an argument, ``now_ns`` of a clock that never goes back. After each fetch its owner calls
:meth:`CachedKeys.fetched` or :meth:`CachedKeys.failed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from headgate.base.units import NS_PER_S
from headgate.security.token_keys import TokenKey

Keys = Mapping[str, Sequence[TokenKey]]
"""Keys by their id (``kid``). Two keys may have one id if they are of different kinds."""

FAILURE_PAUSE_NS: Final = 10 * NS_PER_S
"""After a failure nothing is fetched for so long: every client of a dead issuer would ask it."""


class Answer(Enum):
    """What the cache says about one key id."""

    USE = auto()
    """The key is there and fresh."""
    USE_AND_FETCH = auto()
    """The key is there; fetch all keys again, without waiting for them."""
    FETCH = auto()
    """Fetch all keys and ask again."""
    UNKNOWN = auto()
    """The issuer has no such key."""
    FAILED = auto()
    """There are no keys, and the last fetch failed a moment ago."""


@dataclass(frozen=True, slots=True)
class CacheTimes:
    """Periods in nanoseconds, by Pulsar's settings."""

    refresh_after_ns: int
    """``openIDCacheRefreshAfterWriteSeconds``: the age from which keys are fetched again."""
    expire_after_ns: int
    """``openIDCacheExpirationSeconds``: the age from which keys no longer serve."""
    miss_refresh_ns: int
    """``openIDKeyIdCacheMissRefreshSeconds``: how long after the begin of a fetch that succeeded an
    unknown key id causes no other one."""


class CachedKeys:
    """The keys of one issuer."""

    __slots__ = ("_failed_ns", "_fetched_ns", "_keys", "_looked_ns", "_times", "error")

    def __init__(self, times: CacheTimes) -> None:
        self._times = times
        self._keys: Keys = {}
        self._fetched_ns: int | None = None
        """When the present keys arrived."""
        self._looked_ns: int | None = None
        """When the fetch of the present keys began: the issuer may have new ones since then."""
        self._failed_ns: int | None = None
        """When the last fetch failed; None if it did not."""
        self.error = ""
        """Why it failed."""

    def answer(self, key_id: str, now_ns: int) -> Answer:
        """What to do for a token that is signed with the key ``key_id``."""
        if not self._is_within(self._fetched_ns, self._times.expire_after_ns, now_ns):
            return Answer.FAILED if self._is_paused(now_ns) else Answer.FETCH
        if key_id not in self._keys:
            has_just_looked = self._is_within(self._looked_ns, self._times.miss_refresh_ns, now_ns)
            return Answer.UNKNOWN if has_just_looked or self._is_paused(now_ns) else Answer.FETCH
        is_fresh = self._is_within(self._fetched_ns, self._times.refresh_after_ns, now_ns)
        return Answer.USE if is_fresh or self._is_paused(now_ns) else Answer.USE_AND_FETCH

    def keys(self, key_id: str, now_ns: int) -> Sequence[TokenKey]:
        """The keys of that id which serve now; none if the cache has expired."""
        if not self._is_within(self._fetched_ns, self._times.expire_after_ns, now_ns):
            return ()
        return self._keys.get(key_id, ())

    def fetched(self, keys: Keys, began_ns: int, now_ns: int) -> None:
        """A fetch that began at ``began_ns`` brought ``keys``. Others no longer serve."""
        self._keys, self._looked_ns, self._fetched_ns = keys, began_ns, now_ns
        self._failed_ns, self.error = None, ""

    def failed(self, error: str, now_ns: int) -> None:
        """A fetch failed. The present keys serve until they expire."""
        self._failed_ns, self.error = now_ns, error

    def _is_paused(self, now_ns: int) -> bool:
        return self._is_within(self._failed_ns, FAILURE_PAUSE_NS, now_ns)

    @staticmethod
    def _is_within(since_ns: int | None, period_ns: int, now_ns: int) -> bool:
        return since_ns is not None and now_ns - since_ns < period_ns
