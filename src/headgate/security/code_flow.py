"""The messages of OpenID Connect's code flow with PKCE, between a browser, a client and an issuer.

OpenID Connect Core 3.1, RFC 6749, RFC 7636 and RFC 9207. The client is the broker: it makes the URL
to which a browser goes, reads what the browser brings back, and exchanges the code for tokens.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, quote_plus, urlencode, urlsplit

from headgate.base.errors import HeadgateError
from headgate.security.errors import CredentialsError, InvalidKeyError
from headgate.security.jwks import configuration_of, json_object, url_of

CODE_CHARACTERS_MAX: Final = 2_048
QUERY_BYTES_MAX: Final = 8_192
TOKEN_CHARACTERS_MAX: Final = 32_768
"""A longer token would not fit into the head of a request."""

_PARAMETERS_MAX: Final = 32
_ERROR_SHOWN_MAX: Final = 300
_METHOD: Final = "S256"

_TOKEN_ERRORS: Final = frozenset(
    {"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
     "unsupported_grant_type", "invalid_scope", "server_error", "temporarily_unavailable"}
)  # fmt: skip
"""What a token endpoint may answer with. Any other text could repeat what it was sent."""


class SignInError(HeadgateError):
    """A reader cannot be signed in. The text is for the reader and has no secret."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What an issuer's configuration says about the flow."""

    authorization_url: str
    token_url: str
    names_itself: bool
    """``authorization_response_iss_parameter_supported``: each answer names the issuer."""
    takes_secret_in_header: bool
    """``client_secret_basic``, the default; otherwise ``client_secret_post``."""


@dataclass(frozen=True, slots=True)
class Client:
    """The broker as it is registered with an issuer."""

    issuer: str
    client_id: str
    redirect_url: str
    scopes: str = "openid"
    audience: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The answer of a token endpoint."""

    access_token: str = field(repr=False)
    id_token: str = field(repr=False)


def endpoints_of(document: bytes, issuer: str, *, must_encrypt: bool) -> Endpoints:
    """The endpoints in an issuer's configuration.

    Raises:
        DocumentError: the document is unreadable, another issuer's, or has no such URLs.
        InvalidKeyError: the issuer cannot do the flow with PKCE.
    """
    found = configuration_of(document, issuer)
    methods = found.get("code_challenge_methods_supported")
    if isinstance(methods, list) and _METHOD not in methods:
        raise InvalidKeyError(f"the issuer does not support PKCE with {_METHOD}")
    ways = found.get("token_endpoint_auth_methods_supported")
    return Endpoints(
        url_of(found, "authorization_endpoint", issuer, must_encrypt=must_encrypt),
        url_of(found, "token_endpoint", issuer, must_encrypt=must_encrypt),
        found.get("authorization_response_iss_parameter_supported") is True,
        not isinstance(ways, list) or "client_secret_basic" in ways or not ways,
    )


def text_of_bytes(data: bytes) -> str:
    """Random bytes as the URL-safe text that the flow's values are."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def authorization_url(
    client: Client, endpoints: Endpoints, *, state: str, nonce: str, verifier: str
) -> str:
    """Where the browser goes to sign in."""
    challenge = text_of_bytes(hashlib.sha256(verifier.encode()).digest())
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": client.redirect_url,
        "scope": client.scopes,
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": _METHOD,
    }
    if client.audience:
        query["audience"] = client.audience
    joint = "&" if urlsplit(endpoints.authorization_url).query else "?"
    return f"{endpoints.authorization_url}{joint}{urlencode(query, quote_via=quote)}"


def parameters_of(query: bytes) -> Mapping[str, str]:
    """The parameters that a browser brings back.

    Raises:
        SignInError: there are too many, one twice, or they are unreadable.
    """
    unreadable = SignInError("The answer of the identity provider cannot be read")
    if len(query) > QUERY_BYTES_MAX:
        raise unreadable
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict",
            max_num_fields=_PARAMETERS_MAX,
        )  # fmt: skip
    except (ValueError, UnicodeError):
        raise unreadable from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise unreadable
    return found


def code_of(parameters: Mapping[str, str], client: Client, endpoints: Endpoints) -> str:
    """The code in the answer of an issuer, which is known to belong to a sign-in.

    Raises:
        SignInError: another issuer answers, this one refuses, or there is no code.
    """
    issuer = parameters.get("iss")
    if issuer is None and endpoints.names_itself:
        raise SignInError(f"The answer does not say that it is of {client.issuer}")
    if issuer is not None and issuer != client.issuer:
        raise SignInError(f"Another identity provider than {client.issuer} answers")
    if error := parameters.get("error"):
        more = parameters.get("error_description", "")
        said = f"{error}: {more}" if more else error
        raise SignInError(f"{client.issuer} refuses: {_printable(said)}")
    code = parameters.get("code", "")
    if not 0 < len(code) <= CODE_CHARACTERS_MAX:
        raise SignInError(f"The answer of {client.issuer} has no code")
    return code


def token_request(
    client: Client, endpoints: Endpoints, *, code: str, verifier: str, secret: str
) -> tuple[bytes, Mapping[str, str]]:
    """Body and headers of the request that exchanges a code; an empty ``secret`` is none."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": client.redirect_url,
        "client_id": client.client_id,
        "code_verifier": verifier,
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if secret and endpoints.takes_secret_in_header:
        # RFC 6749, 2.3.1: both parts are encoded as in a form before they are joined.
        pair = f"{quote_plus(client.client_id)}:{quote_plus(secret)}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif secret:
        form["client_secret"] = secret
    return urlencode(form).encode(), headers


def tokens_of(status: int, document: bytes) -> Tokens:
    """The tokens in the answer of a token endpoint.

    Raises:
        SignInError: it refuses; the text has the error if it is one of RFC 6749.
        InvalidKeyError: it answers something else.
    """
    found = json_object(document, f"the answer of the token endpoint (status {status})")
    if status != 200:
        error = found.get("error")
        known = error if isinstance(error, str) and error in _TOKEN_ERRORS else f"status {status}"
        raise SignInError(f"The identity provider does not exchange the code: {known}")
    kind = found.get("token_type")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise InvalidKeyError("the token endpoint gives tokens of another type than Bearer")
    return Tokens(_token(found, "access_token"), _token(found, "id_token"))


def check_id_claims(claims: Mapping[str, Any], client_id: str, nonce: str) -> None:
    """Check what is asked of an ID token beside signature, issuer, audience and times.

    Raises:
        CredentialsError: it is of another sign-in, or was made for another client.
    """
    found = claims.get("nonce")
    # JSON may have half of a surrogate pair, which UTF-8 does not have.
    if not isinstance(found, str) or not hmac.compare_digest(
        found.encode(errors="surrogatepass"), nonce.encode()
    ):
        raise CredentialsError("the ID token is of another sign-in: its nonce differs")
    party = claims.get("azp")
    if party is not None and party != client_id:
        raise CredentialsError("the ID token was made for another client (azp)")


def _token(found: Mapping[str, Any], name: str) -> str:
    text = found.get(name)
    if not isinstance(text, str) or not 0 < len(text) <= TOKEN_CHARACTERS_MAX:
        raise InvalidKeyError(f"the token endpoint gives no {name}")
    return text


def _printable(text: str) -> str:
    shown = "".join(each if each.isprintable() else " " for each in text[:_ERROR_SHOWN_MAX])
    return shown.strip()
