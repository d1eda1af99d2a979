"""How a request reaches a broker: the port that the client of a cluster uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class RawReply(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    """Their names in lower case."""
    body: bytes | bytearray


class Transport(Protocol):
    """Sends requests. Several threads call it at the same time."""

    def get(
        self, url: str, headers: Mapping[str, str], timeout_s: float, bytes_max: int
    ) -> RawReply:
        """The reply to one GET; a redirect is not followed.

        Args:
            url: whole, of ``http`` or ``https``.
            headers: have the credentials.
            timeout_s: for the whole answer.
            bytes_max: most bytes of its body, uncompressed.

        Raises:
            InputError: the URL or a file of certificates cannot be used.
            UnreachableError: no whole answer came. The text is one sentence, which begins with the
                server's URL.
        """

    def close(self) -> None:
        """Close idle connections."""
