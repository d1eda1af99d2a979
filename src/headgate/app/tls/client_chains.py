"""Bounds what the certificates of clients take: OpenSSL keeps all that a client sends, as parsed.

That is five times their bytes, as long as the connection is open. Of TLS 1.2 it also keeps each
session for two hours, with these certificates: 20,480 sessions in a context, and Python has no
setting for that. A client with a long chain of certificates would fill the memory by handshakes.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

from headgate.app.tls.handshake_steps import put_off
from headgate.base.units import KIB

CHAIN_BYTES_MAX: Final = 14 * KIB
"""Most bytes of the certificates of a client, as in a file of PEM: five of RSA-4096 and more."""

SESSIONS_KEPT: Final = 1_000
"""Sessions in a context from which on it keeps none with certificates."""


class LongChainError(ssl.SSLError):
    """A client has sent too many bytes of certificates."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self.reason = f"its certificates have {size_bytes:,} bytes, {CHAIN_BYTES_MAX:,} are allowed"


class ServerTls(ssl.SSLObject):
    """The server's end of one connection."""

    _is_taken = False
    """Whether a step was taken elsewhere, whose outcome is not told."""
    _error: Exception | None = None
    """What it raised."""

    def do_handshake(self) -> None:
        """As OpenSSL does it; then look at the certificates of the client. Where steps are put off,
        the next one tells how it was.

        Raises:
            LongChainError: they are too long.
        """
        later = put_off.get()
        if later is None or self.context.verify_mode == ssl.CERT_NONE:
            self._take()
        elif self._is_taken:
            error, self._error, self._is_taken = self._error, None, False
            if error is not None:
                try:
                    raise error
                finally:
                    del error
        else:
            later.append(self._take_elsewhere)
            raise ssl.SSLWantReadError

    def _take_elsewhere(self) -> bool:
        """Take a step on a thread. Nothing else may use this or its buffers meanwhile. Returns
        whether the handshake is done, with a certificate of an authority that is trusted."""
        try:
            self._take()
        except Exception as error:  # for the loop
            self._error = error
        self._is_taken = True
        return self._error is None and self.getpeercert(binary_form=True) is not None

    def _take(self) -> None:
        super().do_handshake()
        size_bytes = self._chain_bytes()
        if size_bytes > CHAIN_BYTES_MAX:
            raise LongChainError(size_bytes)

    def unwrap(self) -> None:
        """Tell the client that the connection ends, unless OpenSSL should forget its session: it
        keeps none of a connection that ends without this."""
        if not self._is_to_be_forgotten():
            super().unwrap()

    def _chain_bytes(self) -> int:
        if self.getpeercert(binary_form=True) is None:
            return 0
        own: Any = self._sslobj  # type: ignore[attr-defined]  # public from Python 3.13 on
        return sum(len(each.public_bytes()) for each in own.get_unverified_chain() or ())

    def _is_to_be_forgotten(self) -> bool:
        return (
            self.version() == "TLSv1.2"
            and self.context.session_stats()["number"] > SESSIONS_KEPT
            and self.getpeercert(binary_form=True) is not None
        )
