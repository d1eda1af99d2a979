"""The law of sign-ins that have begun: who may end one, how long it lives, and how many there are.

A sign-in belongs to the browser that began it, by a secret in a cookie, and to the tab, which knows
its ``state``. It ends once. Time is an argument, ``now_ns`` of a clock that never goes back.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from headgate.base.sparse_counter import SparseCounter
from headgate.base.units import NS_PER_S
from headgate.security.code_flow import SignInError, text_of_bytes
from headgate.security.failed_attempts import network_of

LIFETIME_S: Final = 600
"""So long a reader may take at the issuer."""

SIGN_INS_MAX: Final = 1_000
"""Sign-ins that have begun and did not end, of all addresses; about 4 KiB each."""

PER_ADDRESS_MAX: Final = 100
"""The same of one address, which may be a proxy with many readers behind it.

Beyond a bound a new one takes the place of the oldest: of its own address, or of the address with
most. If new ones were refused, 100 requests would lock out all readers of an address for
:data:`LIFETIME_S`, and 1,000 of a few networks all readers. So a flood of other addresses ends no
sign-in, and one of the same address only as long as it goes on.
"""

_SECRET_BYTES: Final = 32
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""How 32 bytes look as text."""

_UNKNOWN: Final = "This sign-in has ended, or began in another browser"


class TooManyFailuresError(SignInError):
    """Too many codes of an address were no codes of the issuer: try again later."""


class UnansweredSignInError(SignInError):
    """The issuer has not answered yet."""


@dataclass(slots=True)
class SignIn:
    """One sign-in."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    browser: bytes = field(repr=False)
    """The digest of the browser's secret."""
    network: str
    expires_ns: int
    code: str = field(default="", repr=False)
    """The issuer's code, once the browser has brought it."""
    error: str = ""
    """Why there is none, for the reader."""


class SignIns:
    """Those that have begun and did not end."""

    def __init__(
        self,
        entropy: Callable[[int], bytes],
        sign_ins_max: int = SIGN_INS_MAX,
        per_address_max: int = PER_ADDRESS_MAX,
    ) -> None:
        """``entropy`` gives so many random bytes."""
        self._entropy = entropy
        self._sign_ins_max = sign_ins_max
        self._per_address_max = per_address_max
        self._by_state: dict[str, SignIn] = {}
        """By their age, the oldest first."""
        self._per_network: SparseCounter[str] = SparseCounter()

    def __len__(self) -> int:
        return len(self._by_state)

    def secret(self, presented: str | None) -> str:
        """The secret of a browser: the one that it presents, or a new one. A browser keeps its
        secret, so that two of its tabs can sign in at once."""
        return presented if presented is not None and is_secret(presented) else self._text()

    def begin(self, browser: str, address: str, now_ns: int) -> SignIn:
        """A new sign-in of the browser with that secret. Beyond a bound it takes the place of
        another one."""
        self._expire(now_ns)
        network = network_of(address)
        if self._per_network[network] >= self._per_address_max:
            self._forget_oldest({network})
        elif len(self._by_state) >= self._sign_ins_max:
            most = max(self._per_network.values())
            self._forget_oldest({name for name, n in self._per_network.items() if n == most})
        found = SignIn(
            self._text(), self._text(), self._text(), _digest(browser), network,
            now_ns + LIFETIME_S * NS_PER_S,
        )  # fmt: skip
        self._by_state[found.state] = found
        self._per_network[network] += 1
        return found

    def unanswered(self, state: str, browser: str | None, now_ns: int) -> SignIn:
        """The sign-in for which a browser brings the issuer's answer: its first one.

        Raises:
            SignInError: there is none, it is another browser's, or it has its answer.
        """
        found = self._own(state, browser, now_ns)
        if found.code or found.error:
            raise SignInError(_UNKNOWN)
        return found

    def answered(self, sign_in: SignIn) -> str:
        """The browser that brought the answer gets a new secret, for all its sign-ins.

        Whoever could put a cookie into that browser, such as another program on the same host,
        knows the one before, and could otherwise end a sign-in that the reader has carried out.
        """
        secret, before = self._text(), sign_in.browser
        for each in self._by_state.values():
            if each.browser == before:
                each.browser = _digest(secret)
        return secret

    def end(self, state: str, browser: str | None, now_ns: int) -> SignIn:
        """The sign-in that a browser ends, which no other call gives again.

        Raises:
            UnansweredSignInError: the issuer has not answered; the sign-in goes on.
            SignInError: there is none, or it is another browser's.
        """
        found = self._own(state, browser, now_ns)
        if not found.code and not found.error:
            raise UnansweredSignInError("The identity provider has not answered yet")
        self._forget(found)
        return found

    def _own(self, state: str, browser: str | None, now_ns: int) -> SignIn:
        self._expire(now_ns)
        found = self._by_state.get(state)
        if found is None or browser is None:
            raise SignInError(_UNKNOWN)
        if not hmac.compare_digest(found.browser, _digest(browser)):
            raise SignInError(_UNKNOWN)
        return found

    def _expire(self, now_ns: int) -> None:
        while self._by_state:
            oldest = next(iter(self._by_state.values()))
            if now_ns < oldest.expires_ns:
                return
            self._forget(oldest)

    def _forget_oldest(self, networks: Collection[str]) -> None:
        """Forget the oldest sign-in of these networks."""
        for found in self._by_state.values():
            if found.network in networks:
                self._forget(found)
                return

    def _forget(self, sign_in: SignIn) -> None:
        del self._by_state[sign_in.state]
        self._per_network[sign_in.network] -= 1

    def _text(self) -> str:
        return text_of_bytes(self._entropy(_SECRET_BYTES))


def is_secret(text: str) -> bool:
    """Whether a text has the form of a browser's secret."""
    return _SECRET.fullmatch(text) is not None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
