"""A producer of the telemetry topic by ``pulsar-client``.

``headgate[demo]`` and ``headgate[spark]`` bring the library, which is loaded when it is needed.
"""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from headgate.access.authentication import Say, authentication, certificate_paths
from headgate.access.client_config import ClientConfig
from headgate.agent.record_topic import TopicError
from headgate.base.units import MS_PER_S

logger = logging.getLogger("headgate.agent")

SEND_TIMEOUT_S: Final = 30


class PulsarProducer:
    """A producer of ``pulsar-client``."""

    def __init__(
        self, config: ClientConfig, topic: str, environment: Mapping[str, str], say: Say
    ) -> None:
        """Connect to ``config.broker_url``.

        Raises:
            InputError: the credentials cannot be used.
            TopicError: the cluster does not let this client produce.
        """
        import pulsar

        self._failure = pulsar.PulsarException
        certificate, key = certificate_paths(config)
        try:
            self._client = pulsar.Client(
                config.broker_url,
                authentication=_credentials(pulsar, config, environment, say),
                tls_trust_certs_file_path=config.trust_path or None,
                tls_allow_insecure_connection=config.allow_insecure,
                tls_validate_hostname=config.verify_hostname,
                tls_certificate_file_path=certificate or None,
                tls_private_key_file_path=key or None,
                stats_interval_in_seconds=0,
                logger=_library_logger(pulsar),
            )
        except (ValueError, pulsar.PulsarException) as error:
            raise TopicError(f"{config.broker_url}: {error}") from error
        try:
            self._producer = self._client.create_producer(
                topic, send_timeout_millis=SEND_TIMEOUT_S * MS_PER_S, batching_enabled=False
            )
        except pulsar.PulsarException as error:
            self.close()
            raise TopicError(f"{config.broker_url}: {error}") from error

    def send(self, data: bytes, properties: dict[str, str]) -> None:
        """Store one message. Raises :class:`TopicError`."""
        try:
            self._producer.send(data, properties=properties)
        except self._failure as error:
            raise TopicError(str(error)) from error

    def close(self) -> None:
        """Close the client; what it raises is of no use any more."""
        with suppress(self._failure):
            self._client.close()


def _library_logger(pulsar: Any) -> Any:
    """Where the library's own lines go: nowhere, unless somebody looks for a fault. They repeat
    what a broker says, some MiB of it at each attempt, also the token if it sends that back."""
    level = pulsar.LoggerLevel.Error
    if logger.isEnabledFor(logging.DEBUG):
        return pulsar.ConsoleLogger(level)
    return pulsar.FileLogger(level, os.devnull)


def _credentials(
    pulsar: Any, config: ClientConfig, environment: Mapping[str, str], say: Say
) -> Any:
    """The credentials for the client; it reads a token again for each connection."""
    found = authentication(config, environment, say)
    scheme, _, value = found.headers().get("Authorization", "").partition(" ")
    if scheme == "Bearer":
        return pulsar.AuthenticationToken(lambda: found.headers()["Authorization"].split(" ")[1])
    if scheme == "Basic":
        user, _, password = base64.b64decode(value).decode().partition(":")
        return pulsar.AuthenticationBasic(user, password)
    certificate, key = certificate_paths(config)
    return pulsar.AuthenticationTLS(certificate, key) if certificate else None
