"""Keys that a setting or an option has in itself, and the paths of those in files."""

from __future__ import annotations

import base64
from urllib.parse import unquote, urlsplit

from headgate.security.errors import InvalidKeyError


def decoded(text: str) -> bytes:
    """Base64, with the usual or the URL's alphabet, with or without padding.

    Raises:
        ValueError: it is something else, or empty.
    """
    compact = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        found = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except ValueError as error:
        raise ValueError("no base64") from error
    if not found:
        raise ValueError("empty")
    return found


def key_of_data_url(url: str, what: str) -> bytes:
    """The key in ``data:;base64,...``; ``what`` names the setting or option in errors.

    Raises:
        InvalidKeyError: there is none in it.
    """
    head, comma, body = url.partition(",")
    try:
        if not comma or not head.endswith(";base64"):
            raise ValueError("no base64")
        return decoded(unquote(body))
    except ValueError:
        raise InvalidKeyError(f"{what} is no data:;base64,... with a key in it") from None


def path_of_file_url(url: str, what: str) -> str:
    """The path in ``file:///path``.

    Raises:
        InvalidKeyError: it names no file of this machine.
    """
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise InvalidKeyError(f"{what}={url!r} names no file of this machine: file:///path does")
    return unquote(parts.path)
