"""Credentials and TLS settings of a query.

The options have the names of Pulsar's clients. They apply to the binary protocol and to the admin
API. A secret in a file is read again for each connection and request, so that it can be replaced
while a query runs. One in an environment variable of the driver is read when the query is planned.

No text contains a secret: ``repr`` omits it, errors do not quote these options, and
:meth:`Access.scrubbed` removes it from the answers of servers.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark_pulsar.errors import AccessError
from pyspark_pulsar.oauth2 import TOKEN_TEXT, OAuth2, current_token, oauth2

_CLASSES = "org.apache.pulsar.client.impl.auth"
TOKEN_PLUGINS = (f"{_CLASSES}.AuthenticationToken", "token")
BASIC_PLUGINS = (f"{_CLASSES}.AuthenticationBasic", "basic")
TLS_PLUGINS = (f"{_CLASSES}.AuthenticationTls", "tls")
OAUTH2_PLUGINS = (f"{_CLASSES}.oauth2.AuthenticationOAuth2", "oauth2")
"""Names of the kinds of credentials: the Java client's and the C++ client's."""

NO_CREDENTIALS_ADVICE = "set the options authPluginClassName and authParams"
"""The advice if the cluster refuses a query without credentials."""

TLS_OPTIONS = (
    "tlsTrustCertsFilePath",
    "tlsCertificateFilePath",
    "tlsKeyFilePath",
    "tlsAllowInsecureConnection",
    "tlsHostnameVerificationEnable",
)
ACCESS_OPTIONS = ("authPluginClassName", "authParams", *TLS_OPTIONS)

_TLS_REFUSALS = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS; did you mean http://?",
    "HTTP_REQUEST": "it does not speak TLS; did you mean http://?",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it requires a client certificate "
    "(authPluginClassName=tls)",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the certificate of authParams",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not trust the certificate of authParams",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the certificate of authParams has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not trust the certificate of authParams",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it requires a client certificate, or other ciphers",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it supports another version of TLS only",
}
"""OpenSSL's reasons that no retry resolves, in words."""


@dataclass(frozen=True, slots=True)
class Access:
    """The credentials and TLS settings of a query.

    At most one of ``token``, ``token_path``, ``password``, ``password_path`` and ``flow`` is set.
    ``trust_path`` is a file of certificate authorities; None means the public ones.
    """

    token: str | None = field(default=None, repr=False)
    token_path: str | None = None
    password: str | None = field(default=None, repr=False)
    """A user and a password, in one of the forms of ``authParams``; or ``password_path`` has it."""
    password_path: str | None = None
    flow: OAuth2 | None = None
    certificate_path: str | None = None
    key_path: str | None = None
    trust_path: str | None = None
    allow_insecure: bool = False
    verify_hostname: bool = True

    def current_token(self) -> str | None:
        """The current token; None without one.

        Raises :class:`AccessError` if its file cannot be read or holds no token, or the issuer
        gives none.
        """
        if self.flow is not None:
            return current_token(self.flow)
        if self.token_path is None:
            return self.token
        text = _file_text(self.token_path, "token file")
        if not TOKEN_TEXT.fullmatch(text):
            raise AccessError(
                f"the token file {self.token_path} of authParams does not hold one token: "
                + ("it is empty" if not text else "it has spaces or characters beyond ASCII")
            )
        return text

    def current_password(self) -> tuple[str, str] | None:
        """The current user and password; None without them.

        Raises :class:`AccessError` if their file cannot be read or holds none.
        """
        if self.password_path is None:
            return None if self.password is None else user_and_password(self.password)
        text = _file_text(self.password_path, "password file")
        try:
            return user_and_password(text)
        except ValueError:
            raise AccessError(
                f"the password file {self.password_path} of authParams does not hold USER:PASSWORD"
            ) from None

    def presented(self) -> tuple[str, str]:
        """What the client says about itself in CONNECT: Pulsar's name of the method, and its data.

        Two empty texts without credentials. Raises :class:`AccessError` as :meth:`current_token`.
        """
        pair = self.current_password()
        if pair is not None:
            return "basic", ":".join(pair)
        token = self.current_token()
        if token is not None:
            return "token", token
        return "tls" if self.certificate_path is not None else "", ""

    def headers(self) -> dict[str, str]:
        """The headers of an HTTP request. Raises :class:`AccessError` as :meth:`presented`."""
        method, data = self.presented()
        if method == "token":
            return {"Authorization": f"Bearer {data}"}
        if method == "basic":
            return {"Authorization": f"Basic {_encoded(data)}"}
        return {}

    def ssl_context(self) -> ssl.SSLContext:
        """The TLS context of HTTPS connections.

        Raises :class:`AccessError` if a file with certificates or a key cannot be used.
        """
        try:
            context = ssl.create_default_context(cafile=self.trust_path)
        except OSError as error:
            raise AccessError(
                f"tlsTrustCertsFilePath {self.trust_path} cannot be used: {_why(error)}"
            ) from error
        context.check_hostname = self.verify_hostname and not self.allow_insecure
        if self.allow_insecure:
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_path is not None:
            try:
                # Without a password given, OpenSSL would ask for one on the terminal.
                context.load_cert_chain(self.certificate_path, self.key_path, password="")
            except OSError as error:
                raise AccessError(
                    f"the certificate {self.certificate_path} (tlsCertFile) and the key "
                    f"{self.key_path} (tlsKeyFile) cannot be used: {_why(error)}"
                ) from error
        return context

    def check_files(self) -> None:
        """Raise :class:`AccessError` if a file of the options cannot be used."""
        self.presented()
        if self.trust_path is not None or self.certificate_path is not None:
            self.ssl_context()

    def scrubbed(self, text: str) -> str:
        """``text`` from a server, without the token or password, in upper or lower case: the name
        of a host is shown in lower case."""
        try:
            method, data = self.presented()
        except AccessError:
            return text
        secrets = (_encoded(data), data.partition(":")[2]) if method == "basic" else (data,)
        for secret in filter(None, secrets):
            text = re.sub(re.escape(secret), "***", text, flags=re.IGNORECASE)
        return text

    def advice(self) -> str:
        """What to check if the cluster refuses the credentials."""
        if self.token_path is not None:
            return f"check the token in {self.token_path} (authParams) and what it permits"
        if self.token is not None:
            return "check the token in authParams and what it permits"
        if self.password is not None or self.password_path is not None:
            return "check the user and password of authParams and what the user may do"
        if self.flow is not None:
            return f"check what the token of {self.flow.issuer_url} (authParams) permits"
        if self.certificate_path is not None:
            return f"check the certificate {self.certificate_path} (authParams) and its permissions"
        return NO_CREDENTIALS_ADVICE


NO_ACCESS = Access()
"""No credentials; public certificate authorities."""


def credentials(plugin: str, params: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """The fields of :class:`Access` for ``authPluginClassName`` and ``authParams``.

    Raises :class:`ValueError`, which never quotes ``params``, if they are invalid.
    """
    if plugin in TOKEN_PLUGINS:
        return _token(params, environment)
    if plugin in BASIC_PLUGINS:
        return _password(params, environment)
    if plugin in TLS_PLUGINS:
        return _certificate(params)
    if plugin in OAUTH2_PLUGINS:
        return {"flow": oauth2(params)}
    known = (*TOKEN_PLUGINS, *BASIC_PLUGINS, *TLS_PLUGINS, *OAUTH2_PLUGINS)
    raise ValueError(f"authPluginClassName must be one of {', '.join(known)}")


def user_and_password(text: str) -> tuple[str, str]:
    """The two parts of ``{"userId": ..., "password": ...}`` or ``USER:PASSWORD``.

    Raises :class:`ValueError`, which quotes nothing, if it is neither.
    """
    user: Any
    password: Any
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            found = {}
        user, password = found.get("userId", found.get("username")), found.get("password")
    else:
        user, colon, rest = text.partition(":")
        password = rest if colon else None
    if not isinstance(user, str) or not user or ":" in user or not isinstance(password, str):
        raise ValueError(
            'authParams of a user must be USER:PASSWORD, {"userId": "USER", "password": "PASSWORD"}'
            ", file:///PATH or env:NAME of one of them"
        )
    return user, password


def _token(params: str, environment: Mapping[str, str]) -> dict[str, Any]:
    kind, text = _secret(params, environment)
    if kind == "file":
        return {"token_path": text}
    text = text if kind == "env" else text.removeprefix("token:").strip()
    if (kind == "env" or params.startswith("token:")) and TOKEN_TEXT.fullmatch(text):
        return {"token": text}
    raise ValueError(
        "authParams of a token must be token:TOKEN, file:///PATH of a file that holds it, or "
        "env:NAME of a variable of the driver"
    )


def _password(params: str, environment: Mapping[str, str]) -> dict[str, Any]:
    kind, text = _secret(params, environment)
    if kind == "file":
        return {"password_path": text}
    user_and_password(text)
    return {"password": text}


def _secret(params: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """``file`` and a path, ``env`` and the variable's value, or ``text`` and ``params``."""
    scheme, _, rest = params.partition(":")
    if scheme == "file":
        parts = urlsplit(params)
        path = unquote(parts.path)
        if path.startswith("/") and parts.netloc in ("", "localhost"):
            return "file", path
        raise ValueError("authParams must have a file as file:///PATH")
    if scheme == "env":
        value = environment.get(rest, "").strip()
        if not value:
            raise ValueError(f"authParams name the variable {rest}, which the driver does not have")
        return "env", value
    return "text", params


def _certificate(params: str) -> dict[str, Any]:
    fields = {
        key.strip(): value.strip()
        for key, _, value in (part.partition(":") for part in params.split(","))
    }
    if set(fields) != {"tlsCertFile", "tlsKeyFile"} or not all(fields.values()):
        raise ValueError("authParams of a certificate must be tlsCertFile:PATH,tlsKeyFile:PATH")
    return {"certificate_path": fields["tlsCertFile"], "key_path": fields["tlsKeyFile"]}


def tls_refusal(error: BaseException | None) -> str | None:
    """The reason of a TLS failure that no retry resolves; None if a retry may help."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"its certificate is not trusted: {error.verify_message} (tlsTrustCertsFilePath "
                "names the file of the authority to trust)"
            )
        if isinstance(error, ssl.SSLError):
            reason = getattr(error, "reason", None)
            if reason in _TLS_REFUSALS:
                return _TLS_REFUSALS[reason]
        below = next((each for each in error.args if isinstance(each, BaseException)), None)
        error = below or error.__cause__ or error.__context__
    return None


def _encoded(pair: str) -> str:
    """A user and password as a header has them."""
    return base64.b64encode(pair.encode()).decode()


def _file_text(path: str, what: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise AccessError(f"the {what} {path} of authParams cannot be read: {why}") from None


def _why(error: OSError) -> str:
    """The reason of an error: the system's text, or OpenSSL's if it is an error of OpenSSL."""
    if isinstance(error, ssl.SSLError):
        return f"OpenSSL cannot read it ({error.reason or 'no PEM'})"
    return error.strerror or str(error)
