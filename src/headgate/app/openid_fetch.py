"""Fetches what an issuer publishes: its configuration, and the set of keys that it names.

A fetch blocks, so it runs on a lane. It sends no secret.
"""

from __future__ import annotations

from collections.abc import Callable

from headgate.app.issuer_http import FetchBounds, FetchError, get_document, trust_context
from headgate.base.errors import InputError
from headgate.security.code_flow import Endpoints, endpoints_of
from headgate.security.errors import InvalidKeyError
from headgate.security.jwks import configuration_url, keys_of, keys_url
from headgate.security.key_cache import Keys

Fetch = Callable[[str], Keys]
"""Fetches the keys of an issuer. Blocks. Raises :class:`FetchError`."""


def fetch_keys(issuer: str, bounds: FetchBounds) -> Keys:
    """The keys of ``issuer``. Blocks.

    Raises:
        FetchError: the issuer cannot be reached, or answers something else.
    """
    try:
        context = trust_context(bounds.trust_path)
        url = configuration_url(issuer)
        document = get_document(url, bounds, context)
        found = keys_url(document, issuer, must_encrypt=bounds.must_encrypt)
        url = found
        return keys_of(get_document(url, bounds, context))
    except InvalidKeyError as error:
        raise FetchError(f"{url}: {error}") from None
    except InputError as error:
        raise FetchError(str(error)) from None


def fetch_endpoints(issuer: str, bounds: FetchBounds) -> Endpoints:
    """The endpoints of ``issuer`` for signing in. Blocks.

    Raises:
        FetchError: the issuer cannot be reached, or answers something else.
    """
    url = configuration_url(issuer)
    try:
        document = get_document(url, bounds, trust_context(bounds.trust_path))
        return endpoints_of(document, issuer, must_encrypt=bounds.must_encrypt)
    except InvalidKeyError as error:
        raise FetchError(f"{url}: {error}") from None
    except InputError as error:
        raise FetchError(str(error)) from None
