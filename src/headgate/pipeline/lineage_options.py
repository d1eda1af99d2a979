"""The option ``--openlineage``: where a job says what it reads and writes. No library here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from headgate.base.errors import InputError

ENDPOINT: Final = "api/v1/lineage"
"""Path that a URL without one stands for: that of Marquez and of the specification's examples."""


@dataclass(frozen=True, slots=True)
class LineageOptions:
    """Where the events of OpenLineage go."""

    url: str | None = None
    """An HTTP URL; None: no events are made."""
    api_key: str | None = field(default=None, repr=False)
    """Sent as a bearer token; None: none."""

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for a URL that is not one of HTTP."""
        if self.url is not None and not _is_http(self.url):
            raise InputError(
                f"--openlineage {_without_password(self.url)!r}: http://HOST:PORT or https://HOST "
                "is allowed, with a path unless it is /" + ENDPOINT
            )

    @property
    def base_and_endpoint(self) -> tuple[str, str]:
        """The URL without its path, and the path that events are posted to."""
        parts = urlsplit(self.url or "")
        return f"{parts.scheme}://{parts.netloc}", parts.path.lstrip("/") or ENDPOINT


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and port != 0
        and "@" not in parts.netloc
        and not parts.query
        and not parts.fragment
        and not any(character.isspace() for character in url)
    )


def _without_password(url: str) -> str:
    """The URL for a message, without what may be a user's password."""
    scheme, separator, rest = url.partition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}{separator}...@{host}" if user and at else url


NO_LINEAGE: Final = LineageOptions()
"""No events."""
