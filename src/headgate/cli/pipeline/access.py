"""Credentials and TLS of the command line, as the pipeline's jobs take them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from headgate.access.authentication import (
    OAuth2,
    Password,
    Say,
    SecretSource,
    Token,
    authentication,
    certificate_paths,
    plugin_kind,
    user_and_password,
)
from headgate.access.client_config import ClientConfig
from headgate.base.errors import InputError
from headgate.pipeline.access_options import AccessOptions


def access_of(config: ClientConfig, environment: Mapping[str, str], say: Say) -> AccessOptions:
    """The credentials and TLS settings of ``config`` for ``format("pulsar")``.

    A secret that is in a file or a variable stays there: Spark's driver and workers read it.

    Raises:
        InputError: the credentials have another form than their plugin's, or one that Spark's
            workers cannot use.
    """
    sent = authentication(config, environment, say)
    with suppress(InputError):  # the check of the brokers says what cannot be read
        sent.secrets()  # says which file others may read
    plugin = plugin_kind(config.auth_plugin) if config.auth_plugin else ""
    paths = [_absolute(path) for path in certificate_paths(config)]
    params, own = "", paths
    if isinstance(sent, Token):
        params = _params(sent.source, f"token:{sent.source.value}")
    elif isinstance(sent, Password):
        params = _password(sent)
    elif isinstance(sent, OAuth2):
        params = _oauth2(sent)
    elif paths[0]:
        plugin, params = "tls", f"tlsCertFile:{paths[0]},tlsKeyFile:{paths[1]}"
        own = ["", ""]
    return AccessOptions(
        auth_plugin=plugin,
        auth_params=params,
        trust_path=config.trust_path,
        certificate_path=own[0],
        key_path=own[1],
        allow_insecure=config.allow_insecure,
        verify_hostname=config.verify_hostname,
    )


def _params(source: SecretSource, text: str) -> str:
    """Where the secret is; ``text`` if it is nowhere else."""
    if source.kind == "file":
        return Path(_absolute(source.value)).as_uri()
    return f"env:{source.value}" if source.kind == "env" else text


def _password(sent: Password) -> str:
    if sent.source.kind != "text":
        return _params(sent.source, "")
    user, password = user_and_password(sent.source.value, "authParams")
    return json.dumps({"userId": user, "password": password})


def _oauth2(sent: OAuth2) -> str:
    if sent.key.kind != "file":
        raise InputError(
            "the pipeline needs privateKey as file:///PATH, on the driver and on every worker"
        )
    options = sent.flow.options
    fields = {
        "issuerUrl": options.issuer_url,
        "privateKey": Path(_absolute(sent.key.value)).as_uri(),
        "audience": options.audience,
        "scope": options.scope,
        "trustCertsFilePath": options.trust_path and _absolute(options.trust_path),
    }
    return json.dumps({name: value for name, value in fields.items() if value})


def _absolute(path: str) -> str:
    """``path`` for a process with another working directory; empty stays empty."""
    return os.path.abspath(path) if path else ""
