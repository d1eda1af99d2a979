"""Credentials and TLS settings of a query.

The options have the names of Pulsar's clients. They apply to the binary protocol and to the admin
API. A token in a file is read again for each connection and request, so that it can be replaced
while a query runs.

No text contains a token: ``repr`` omits it, errors do not quote these options, and
:meth:`Access.scrubbed` removes it from the answers of servers.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark_pulsar.errors import AccessError

TOKEN_PLUGINS = ("org.apache.pulsar.client.impl.auth.AuthenticationToken", "token")
TLS_PLUGINS = ("org.apache.pulsar.client.impl.auth.AuthenticationTls", "tls")
"""Names of the two kinds of credentials: the Java client's and the C++ client's."""

NO_CREDENTIALS_ADVICE = "set the options authPluginClassName and authParams"
"""The advice if the cluster refuses a query without credentials."""

TLS_OPTIONS = (
    "tlsTrustCertsFilePath",
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

_TOKEN = re.compile(r"[!-~]+")
"""A valid header value: ASCII without spaces."""


@dataclass(frozen=True, slots=True)
class Access:
    """The credentials and TLS settings of a query.

    At most one of ``token``, ``token_path`` and the pair ``certificate_path`` and ``key_path`` is
    set. ``trust_path`` is a file of certificate authorities; None means the public ones.
    """

    token: str | None = field(default=None, repr=False)
    token_path: str | None = None
    certificate_path: str | None = None
    key_path: str | None = None
    trust_path: str | None = None
    allow_insecure: bool = False
    verify_hostname: bool = True

    def current_token(self) -> str | None:
        """The current token; None without one.

        Raises :class:`AccessError` if its file cannot be read or holds no token.
        """
        if self.token_path is None:
            return self.token
        try:
            text = Path(self.token_path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise AccessError(
                f"the token file {self.token_path} of authParams cannot be read: {why}"
            ) from None
        if not _TOKEN.fullmatch(text):
            raise AccessError(
                f"the token file {self.token_path} of authParams does not hold one token: "
                + ("it is empty" if not text else "it has spaces or characters beyond ASCII")
            )
        return text

    def headers(self) -> dict[str, str]:
        """The headers of an HTTP request."""
        token = self.current_token()
        return {} if token is None else {"Authorization": f"Bearer {token}"}

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
                context.load_cert_chain(self.certificate_path, self.key_path)
            except OSError as error:
                raise AccessError(
                    f"tlsCertFile {self.certificate_path} and tlsKeyFile {self.key_path} of "
                    f"authParams cannot be used: {_why(error)}"
                ) from error
        return context

    def check_files(self) -> None:
        """Raise :class:`AccessError` if a file of the options cannot be used."""
        self.current_token()
        if self.trust_path is not None or self.certificate_path is not None:
            self.ssl_context()

    def scrubbed(self, text: str) -> str:
        """``text`` from a server, without the token."""
        try:
            token = self.current_token()
        except AccessError:
            token = None
        return text.replace(token, "***") if token else text

    def advice(self) -> str:
        """What to check if the cluster refuses the credentials."""
        if self.token_path is not None:
            return f"check the token in {self.token_path} (authParams) and what it permits"
        if self.token is not None:
            return "check the token in authParams and what it permits"
        if self.certificate_path is not None:
            return f"check the certificate {self.certificate_path} (authParams) and its permissions"
        return NO_CREDENTIALS_ADVICE


NO_ACCESS = Access()
"""No credentials; public certificate authorities."""


def credentials(plugin: str, params: str) -> dict[str, str]:
    """The fields of :class:`Access` for ``authPluginClassName`` and ``authParams``.

    Raises :class:`ValueError`, which never quotes ``params``, if they are invalid.
    """
    if plugin in TOKEN_PLUGINS:
        return _token(params)
    if plugin in TLS_PLUGINS:
        return _certificate(params)
    raise ValueError(
        f"authPluginClassName must be one of {', '.join((*TOKEN_PLUGINS, *TLS_PLUGINS))}"
    )


def _token(params: str) -> dict[str, str]:
    scheme, _, rest = params.partition(":")
    if scheme == "token" and _TOKEN.fullmatch(rest.strip()):
        return {"token": rest.strip()}
    if scheme == "file":
        parts = urlsplit(params)
        path = unquote(parts.path)
        if path.startswith("/") and parts.netloc in ("", "localhost"):
            return {"token_path": path}
    raise ValueError(
        "authParams of a token must be token:TOKEN, or file:///PATH of a file that holds it"
    )


def _certificate(params: str) -> dict[str, str]:
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


def _why(error: OSError) -> str:
    """The reason of an error: the system's text, or OpenSSL's if it is an error of OpenSSL."""
    if isinstance(error, ssl.SSLError):
        return f"OpenSSL cannot read it ({error.reason or 'no PEM'})"
    return error.strerror or str(error)
