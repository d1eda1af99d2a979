"""The configuration of ``headgate agent``: a TOML file with one table for each cluster.

``[agent]`` has the agent's own port and files, ``[cluster.NAME]`` the keys of Pulsar's
``client.conf`` for that cluster and a few of the agent's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.access.client_config import CLIENT_KEYS, WITHOUT_USER, ClientConfig, config_of
from headgate.agent.record_files import FileBounds
from headgate.agent.request_budget import REQUESTS_PER_S_MAX
from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors, did_you_mean
from headgate.base.names import InvalidNameError, NamespaceName, parse_topic
from headgate.base.units import MIB, NS_PER_HOUR, NS_PER_MS, PORT_MAX
from headgate.base.web_hosts import names_user

LISTEN: Final = "127.0.0.1:8090"
"""Where the agent listens by default: this machine alone."""

CLUSTERS_MAX: Final = 100
DAYS_MAX: Final = 3_650
MIB_MAX: Final = 1 << 30
_MS_PER_DAY: Final = 24 * NS_PER_HOUR // NS_PER_MS

_NAME: Final = re.compile(r"[-\w.]{1,100}", re.ASCII)
"""Of a cluster: it names a folder and stands in URLs."""

REFRESH_KEY: Final = "tlsCertRefreshCheckDurationSec"
TLS_KEYS: Final = (
    "tlsCertificateFilePath", "tlsKeyFilePath", "headgateTlsSniCertificateFilePaths",
    "headgateTlsSniKeyFilePaths", "tlsTrustCertsFilePath", "tlsRequireTrustedClientCertOnConnect",
    REFRESH_KEY, "tlsProtocols", "tlsCiphers",
)  # fmt: skip
"""Settings of a broker that mean the same for the agent's port."""
TLS_NEEDED: Final = TLS_KEYS[:2]
AGENT_KEYS: Final = (
    "listen", "files", "filesMaxMiB", "filesMaxDays", "tokenSecretKey", "tokenPublicKey", "roles",
    "headgateWebHostNames", *TLS_KEYS,
)  # fmt: skip
CLUSTER_KEYS: Final = (
    "namespaces", "requestsPerSecond", "telemetryTopic", "telemetryServiceUrl",
)  # fmt: skip
"""Keys of a cluster beside those of ``client.conf``."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """One cluster to watch."""

    name: str
    client: ClientConfig
    namespaces: tuple[str, ...] = ()
    """Looked at if the role is no superuser."""
    requests_per_s: int = REQUESTS_PER_S_MAX
    telemetry_topic: str = ""
    """Where records are published; empty for nowhere."""
    telemetry_url: str = ""
    """The binary protocol of the cluster with that topic."""


@dataclass(frozen=True, slots=True)
class PortSettings:
    """The agent's own port, and who may ask there."""

    host: str = "127.0.0.1"
    port: int = 8090
    """0 takes a free one."""
    secret_key: str = ""
    """Where the key of tokens is, as ``tokenSecretKey`` of a broker."""
    public_key: str = ""
    """As ``tokenPublicKey`` of a broker."""
    roles: tuple[str, ...] = ()
    """Roles whose tokens are accepted."""
    host_names: str = ""
    """As ``headgateWebHostNames`` of a broker."""
    tls: Mapping[str, str] = field(default_factory=dict)
    """Texts of :data:`TLS_KEYS`, as in ``broker.conf``; empty without TLS."""

    @property
    def has_authentication(self) -> bool:
        """Whether a client needs a token."""
        return bool(self.secret_key or self.public_key)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """All that the agent is told."""

    clusters: tuple[ClusterSettings, ...]
    port: PortSettings = PortSettings()
    files: str = ""
    """Folder of record files, with one in it for each cluster; empty for none."""
    bounds: FileBounds = field(default_factory=FileBounds)


def parse_configuration(text: str, origin: str) -> AgentSettings:
    """The settings in a file, whose name is ``origin``.

    Raises:
        InputError: it is no TOML, or values are not allowed: all of them.
    """
    try:
        found: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The text of the error has a line and a column, and nothing of the file.
        raise InputError(f"{origin} is no TOML: {error}") from error
    faults = InputErrors()
    for key in found:
        if key not in ("agent", "cluster"):
            faults.add(
                f"{origin}: there is no table {key!r}{did_you_mean(key, ('agent', 'cluster'))}"
            )
    tables = _table(found, "cluster", origin, faults)
    if not tables:
        faults.add(f"{origin} has no cluster: a table [cluster.NAME] is needed")
    if len(tables) > CLUSTERS_MAX:
        faults.add(f"{origin} has {len(tables):,} clusters; at most {CLUSTERS_MAX} are allowed")
    clusters = []
    for name, table in tables.items():
        with faults.collecting():
            clusters.append(_cluster(name, table, f"{origin}: [cluster.{name}]"))
    agent = _table(found, "agent", origin, faults)
    settings = None
    with faults.collecting():
        settings = _agent(agent, f"{origin}: [agent]", tuple(clusters))
    faults.raise_any()
    if settings is None:
        raise InputError(f"{origin} cannot be used")
    return settings


def port_of(listen: str, what: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``; ``what`` names the setting.

    Raises:
        InputError: it has another form.
    """
    host, colon, port = listen.rpartition(":")
    is_number = port.isascii() and port.isdigit() and int(port) <= PORT_MAX
    if not colon or not host or not is_number:
        raise InputError(f"{what} {listen!r}: HOST:PORT is allowed, such as {LISTEN}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_cluster_name(name: str) -> str:
    """``name``, if a cluster may have it.

    Raises:
        InputError: it may not.
    """
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise InputError(
            f"cluster {name[:80]!r}: 1 to 100 letters, digits or any of -._ are allowed, and no "
            "dot at the begin"
        )
    return name


def check_telemetry(topic: str, service_url: str, what: str) -> None:
    """Check that records can go to a topic.

    Raises:
        InputError: it is no topic, or no URL is known.
    """
    try:
        parse_topic(topic)
    except InvalidNameError as error:
        raise InputError(f"{what}: {error}") from error
    if not service_url:
        raise InputError(
            f"{what} needs the binary protocol of the cluster that has it, such as "
            "pulsar://broker:6650 (brokerServiceUrl)"
        )
    if names_user(service_url):
        raise InputError(f"{what}: the URL of the cluster that has it is {WITHOUT_USER}")


def _agent(
    table: Mapping[str, Any], origin: str, clusters: tuple[ClusterSettings, ...]
) -> AgentSettings:
    _check_keys(table, AGENT_KEYS, origin)
    host, port = port_of(_text(table, "listen", origin, LISTEN), f"{origin}: listen")
    roles = _texts(table, "roles", origin)
    settings = PortSettings(
        host, port, _text(table, "tokenSecretKey", origin), _text(table, "tokenPublicKey", origin),
        roles, _text(table, "headgateWebHostNames", origin), _tls(table, origin),
    )  # fmt: skip
    if settings.has_authentication != bool(roles):
        raise InputError(
            f"{origin}: a key of tokens and roles belong together: set tokenPublicKey or "
            "tokenSecretKey, and in roles who may ask"
        )
    default = FileBounds()
    mib = _number(table, "filesMaxMiB", origin, default.bytes_max // MIB, MIB_MAX)
    days = _number(table, "filesMaxDays", origin, default.age_ms_max // _MS_PER_DAY, DAYS_MAX)
    bounds = FileBounds(mib * MIB, days * _MS_PER_DAY)
    return AgentSettings(clusters, settings, _text(table, "files", origin), bounds)


def _tls(table: Mapping[str, Any], origin: str) -> dict[str, str]:
    values = {key: table[key] for key in TLS_KEYS if key in table}
    if type(seconds := values.get(REFRESH_KEY)) is int:
        values[REFRESH_KEY] = str(seconds)
    given = {key: _setting(value, f"{origin}: {key}") for key, value in values.items()}
    found = {key: text for key, text in given.items() if text}
    missing = [key for key in TLS_NEEDED if key not in found]
    if found and missing:
        raise InputError(f"{origin}: TLS needs {' and '.join(missing)}, which is not set")
    return found


def _cluster(name: str, table: Any, origin: str) -> ClusterSettings:
    check_cluster_name(name)
    if not isinstance(table, dict):
        raise InputError(f"{origin} is no table")
    _check_keys(table, (*CLIENT_KEYS, *CLUSTER_KEYS), origin)
    given = {key: _setting(table[key], f"{origin}: {key}") for key in CLIENT_KEYS if key in table}
    if not given.get("webServiceUrl"):
        raise InputError(f"{origin}: webServiceUrl is needed, the URL of its admin API")
    client = config_of(given, origin)
    namespaces = _texts(table, "namespaces", origin)
    for namespace in namespaces:
        NamespaceName.parse(namespace)
    topic = _text(table, "telemetryTopic", origin)
    url = _text(table, "telemetryServiceUrl", origin, client.broker_url)
    if topic:
        check_telemetry(topic, url, f"{origin}: telemetryTopic")
    return ClusterSettings(
        name, client, namespaces,
        _number(table, "requestsPerSecond", origin, REQUESTS_PER_S_MAX, REQUESTS_PER_S_MAX),
        topic, url if topic else "",
    )  # fmt: skip


def _table(
    found: Mapping[str, Any], key: str, origin: str, faults: InputErrors
) -> Mapping[str, Any]:
    table = found.get(key, {})
    if isinstance(table, dict):
        return table
    faults.add(f"{origin}: {key} is no table")
    return {}


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], origin: str) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"{origin}: there is no key {key!r}{did_you_mean(key, known)}")


def _setting(value: Any, what: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        raise InputError(f"{what}: a text in quotes, true or false is allowed")
    return value.strip()


def _text(table: Mapping[str, Any], key: str, origin: str, default: str = "") -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise InputError(f"{origin}: {key}: a text in quotes is allowed")
    return value.strip()


def _texts(table: Mapping[str, Any], key: str, origin: str) -> tuple[str, ...]:
    values = table.get(key, [])
    if not isinstance(values, list) or not all(isinstance(each, str) and each for each in values):
        raise InputError(f"{origin}: {key}: a list of texts in quotes is allowed")
    return tuple(values)


def _number(table: Mapping[str, Any], key: str, origin: str, default: int, most: int) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InputError(f"{origin}: {key} = {value!r}: a number from 1 to {most:,} is allowed")
    return value
