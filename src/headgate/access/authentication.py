"""Credentials of a command: what it sends, and where its secrets are.

The forms are those of Pulsar's clients. A secret in a file or in an environment variable is read
again for each request, so that it can be replaced meanwhile. No text of this module contains one.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from headgate.access.client_config import ClientConfig
from headgate.access.oauth2 import VISIBLE, ClientCredentialsFlow, FlowOptions, http_json
from headgate.base.errors import InputError
from headgate.security.key_sources import decoded, path_of_file_url

_CLASSES: Final = "org.apache.pulsar.client.impl.auth"
PLUGINS: Final[Mapping[str, str]] = {
    "token": f"{_CLASSES}.AuthenticationToken",
    "basic": f"{_CLASSES}.AuthenticationBasic",
    "tls": f"{_CLASSES}.AuthenticationTls",
    "oauth2": f"{_CLASSES}.oauth2.AuthenticationOAuth2",
}
"""Short names of Pulsar's classes."""

SECRET_BYTES_MAX: Final = 64 * 1024
"""Largest file of a secret; a token has at most 16 KiB."""

_JWT: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)
_PAIR: Final = re.compile(r"(?:userId|username):(?P<user>[^,]*),password:(?P<password>.*)")

Say = Callable[[str], None]


class Authentication(Protocol):
    """Credentials of one kind."""

    @property
    def description(self) -> str:
        """What is sent, for errors; no secret."""

    @property
    def is_literal(self) -> bool:
        """Whether a secret stands in the parameters themselves."""

    def secrets(self) -> list[str]:
        """The texts that no output may contain.

        Raises:
            InputError: they cannot be read.
        """

    def headers(self) -> dict[str, str]:
        """The headers of a request.

        Raises:
            InputError: a secret cannot be read.
            TokenUnavailableError: the issuer gives no token.
        """


@dataclass(frozen=True, slots=True)
class SecretSource:
    """Where a secret is: in a text, a file or an environment variable."""

    kind: str
    """``text``, ``file`` or ``env``."""
    value: str = field(repr=False)
    """The secret itself, a path, or the name of a variable."""
    environment: Mapping[str, str] = field(repr=False)
    say: Say = field(repr=False)
    """Gets the warning about a file that others may read."""

    @property
    def where(self) -> str:
        """Names the place in a sentence."""
        places = {"file": f" in {self.value}", "env": f" in the variable {self.value}"}
        return places.get(self.kind, "")

    def read(self) -> str:
        """The secret, without blanks around it.

        Raises:
            InputError: there is none.
        """
        if self.kind == "text":
            return self.value
        if self.kind == "file":
            return secret_file(self.value, self.say)
        text = self.environment.get(self.value, "").strip()
        if not text:
            raise InputError(f"the variable {self.value} has no credentials: it is not set")
        return text


@dataclass(frozen=True, slots=True)
class NoHeader:
    """Requests say nothing about the client: TLS has its certificate, or it has no credentials."""

    certificate_path: str = ""
    is_literal: bool = False

    @property
    def description(self) -> str:
        """What is sent, for errors."""
        path = self.certificate_path
        return f"the certificate {path}" if path else "no credentials"

    def secrets(self) -> list[str]:
        """None."""
        return []

    def headers(self) -> dict[str, str]:
        """None."""
        return {}


@dataclass(frozen=True, slots=True)
class Token:
    """A token, sent as ``Bearer``."""

    source: SecretSource

    @property
    def description(self) -> str:
        return f"the token{self.source.where}"

    @property
    def is_literal(self) -> bool:
        return self.source.kind == "text"

    def secrets(self) -> list[str]:
        return [self.token()]

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token()}"}

    def token(self) -> str:
        """The token. Raises :class:`InputError` if it cannot be read, or is none."""
        text = self.source.read()
        if not VISIBLE.fullmatch(text):
            raise InputError(f"{self.description} is no token: it has spaces or is no ASCII")
        return text


@dataclass(frozen=True, slots=True)
class Password:
    """A user and a password, sent as ``Basic``."""

    source: SecretSource

    @property
    def description(self) -> str:
        return f"the user and password{self.source.where}"

    @property
    def is_literal(self) -> bool:
        return self.source.kind == "text"

    def secrets(self) -> list[str]:
        return [text for text in (self._pair()[1], self._encoded()) if text]

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Basic {self._encoded()}"}

    def _encoded(self) -> str:
        user, password = self._pair()
        return base64.b64encode(f"{user}:{password}".encode()).decode()

    def _pair(self) -> tuple[str, str]:
        return user_and_password(self.source.read(), self.description)


@dataclass(frozen=True, slots=True)
class OAuth2:
    """A token that the issuer gives for the client's id and secret, sent as ``Bearer``."""

    flow: ClientCredentialsFlow
    key: SecretSource

    @property
    def is_literal(self) -> bool:
        return self.key.kind == "text"

    @property
    def description(self) -> str:
        return f"the token of {self.flow.options.issuer_url}"

    def secrets(self) -> list[str]:
        return self.flow.secrets()

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.flow.token()}"}


def authentication(
    config: ClientConfig, environment: Mapping[str, str], say: Say
) -> Authentication:
    """The credentials of ``config``. ``say`` gets warnings about files that others may read.

    Raises:
        InputError: there is no such plugin, or its parameters have another form. The text repeats
            no parameter.
    """
    plugin, params = config.auth_plugin, config.auth_params
    if not plugin:
        if params:
            raise InputError(f"{config.auth_origin}: --auth-plugin says what it is, such as token")
        return NoHeader(config.certificate_path)
    kind = plugin_kind(plugin)
    if kind == "token":
        return Token(_token_source(params, environment, say))
    if kind == "basic":
        source = _source(params, environment, say)
        if source.kind == "text":
            user_and_password(source.value, "authParams")
        return Password(source)
    if kind == "tls":
        return NoHeader(certificate_paths(config)[0])
    return _oauth2(params, environment, say)


def plugin_kind(plugin: str) -> str:
    """The short name of a plugin.

    Raises:
        InputError: it is none that Headgate knows.
    """
    for short, long in PLUGINS.items():
        if plugin in (short, long):
            return short
    names = ", ".join(PLUGINS)
    raise InputError(f"authPlugin {plugin!r}: {names} or Pulsar's class of one is allowed")


def certificate_paths(config: ClientConfig) -> tuple[str, str]:
    """The client's certificate and its key; two empty texts without one.

    Raises:
        InputError: the parameters of the plugin ``tls`` name no two files.
    """
    if not config.auth_plugin or plugin_kind(config.auth_plugin) != "tls":
        return config.certificate_path, config.key_path
    if not config.auth_params and config.certificate_path:
        return config.certificate_path, config.key_path
    fields = _fields(config.auth_params)
    paths = tuple(str(fields.get(name, "")).strip() for name in ("tlsCertFile", "tlsKeyFile"))
    if not all(paths):
        raise InputError(
            "authParams of a certificate must be tlsCertFile:PATH,tlsKeyFile:PATH (PEM files)"
        )
    return paths[0], paths[1]


def user_and_password(text: str, what: str) -> tuple[str, str]:
    """The two parts of ``{"userId": ..., "password": ...}``, ``userId:NAME,password:WORD`` or
    ``NAME:PASSWORD``.

    Raises:
        InputError: it is none of these; the text repeats nothing of it.
    """
    if text.lstrip().startswith("{"):
        found = _object(text)
        user, password = found.get("userId", found.get("username")), found.get("password")
    elif match := _PAIR.fullmatch(text):
        user, password = match["user"], match["password"]
    else:
        user, colon, password = text.partition(":")
        password = password if colon else None
    if not isinstance(user, str) or not user or not isinstance(password, str) or ":" in user:
        raise InputError(
            f'{what}: NAME:PASSWORD or {{"userId": "NAME", "password": "PASSWORD"}} is allowed, '
            "or file:///PATH or env:NAME of it"
        )
    return user, password


def secret_file(path: str, say: Say) -> str:
    """The text of a file with a secret, without blanks around it. ``say`` gets a warning if all
    users of the machine may read it.

    Raises:
        InputError: it cannot be read, is too long, empty or no text.
    """
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(SECRET_BYTES_MAX + 1)
        text = data.decode().strip()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InputError(f"{path} holds no credentials: it is no text") from None
    if not text or len(data) > SECRET_BYTES_MAX:
        raise InputError(f"{path} holds no credentials: it has {len(data):,} bytes")
    if stat.S_ISREG(mode) and mode & stat.S_IROTH:
        say(f"all users of this machine may read {path}: chmod 600 {path}")
    return text


def _source(params: str, environment: Mapping[str, str], say: Say) -> SecretSource:
    """A secret as ``file:///PATH``, ``env:NAME`` or itself."""
    if params.startswith("file:"):
        path = path_of_file_url(params, "authParams")
        return SecretSource("file", path, environment, say)
    if params.startswith("env:") and params[4:]:
        return SecretSource("env", params[4:], environment, say)
    return SecretSource("text", params, environment, say)


def _token_source(params: str, environment: Mapping[str, str], say: Say) -> SecretSource:
    source = _source(params, environment, say)
    if source.kind != "text":
        return source
    text: Any = params.removeprefix("token:").strip()
    if text.startswith("{"):
        text = _object(text).get("token")
    is_marked = params.startswith(("token:", "{"))
    if not isinstance(text, str) or not (VISIBLE if is_marked else _JWT).fullmatch(text):
        raise InputError("authParams of a token must be file:///PATH, env:NAME or token:TOKEN")
    return SecretSource("text", text, environment, say)


def _oauth2(params: str, environment: Mapping[str, str], say: Say) -> OAuth2:
    fields = _object(params)

    def text(*names: str) -> str:
        found = next((fields[name] for name in names if fields.get(name)), "")
        return found if isinstance(found, str) else ""

    issuer, key = text("issuerUrl", "issuer_url"), text("privateKey", "private_key")
    if not issuer or not key:
        raise InputError(
            'authParams of oauth2 must be {"issuerUrl": URL, "privateKey": "file:///PATH", '
            '"audience": TEXT, "scope": TEXT}; the last two may be left out'
        )
    if key.startswith("data:"):
        source = SecretSource("text", _data_text(key), environment, say)
    else:
        path = path_of_file_url(key, "privateKey") if key.startswith("file:") else key
        source = SecretSource("file", path, environment, say)
    options = FlowOptions(issuer, text("audience"), text("scope"), text("trustCertsFilePath"))
    return OAuth2(ClientCredentialsFlow(options, source.read, http_json), source)


def _data_text(url: str) -> str:
    try:
        return decoded(url.partition(",")[2]).decode()
    except ValueError:
        raise InputError("privateKey is no data:application/json;base64,... URL") from None


def _fields(params: str) -> Mapping[str, Any]:
    """JSON, or ``key:value,key:value``."""
    if params.lstrip().startswith("{"):
        return _object(params)
    pairs = (part.partition(":") for part in params.split(","))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _object(text: str) -> Mapping[str, Any]:
    """A JSON object; an empty one if it is none, whose text no error may repeat."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
