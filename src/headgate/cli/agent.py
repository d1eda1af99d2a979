"""The command ``headgate agent``, which watches clusters that run."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from headgate.access.authentication import authentication
from headgate.access.client_config import ADMIN_URL, ClientConfig
from headgate.agent.configuration import (
    LISTEN,
    AgentSettings,
    ClusterSettings,
    PortSettings,
    check_cluster_name,
    check_telemetry,
    parse_configuration,
    port_of,
)
from headgate.app.key_files import is_literal
from headgate.app.options import LOG_LEVELS
from headgate.app.private_files import OTHERS
from headgate.base.errors import InputError
from headgate.cli.connection.options import ACCESS_PARAMETERS, access_options, is_given
from headgate.cli.pipeline.common import check_needed

CONFIGURATION_BYTES_MAX = 1 << 20
"""Largest file of clusters."""

DEFAULT_NAME = "cluster"

_OF_ONE_CLUSTER = (
    "admin_url", "broker_url", "name", "namespaces", "telemetry_topic", "files", "listen",
)  # fmt: skip
"""Parameters that the file of clusters has in place of options."""

_OPTIONS = {"namespaces": "namespace", "config_path": "config"}
"""Options whose names differ from their parameters'."""


@click.command("agent")
@click.option(
    "--clusters", "clusters_path", metavar="FILE",
    help="TOML file with the clusters to watch, and the agent's own port and files; in place of all"
    " options about one cluster.",
)  # fmt: skip
@click.option(
    "--admin-url", metavar="URL", default=ADMIN_URL, show_default=True,
    help="URL of the cluster's admin API, in place of webServiceUrl in a file or profile.",
)  # fmt: skip
@click.option(
    "--broker-url", metavar="URL",
    help="URL of the cluster's binary protocol, for --telemetry-topic.",
)  # fmt: skip
@click.option(
    "--name", metavar="NAME", default=DEFAULT_NAME, show_default=True,
    help="The cluster's name in telemetry, series and questions.",
)  # fmt: skip
@click.option(
    "--namespace", "namespaces", metavar="TENANT/NAMESPACE", multiple=True,
    help="Namespace to look at if the role is no superuser; may be repeated.",
)  # fmt: skip
@click.option(
    "--files", metavar="DIR",
    help="Write telemetry into files in this folder, for headgate pipeline run --files.",
)  # fmt: skip
@click.option(
    "--telemetry-topic", metavar="TOPIC",
    help="Publish telemetry to this topic, at least once; needs pulsar-client.",
)  # fmt: skip
@click.option(
    "--listen", metavar="HOST:PORT", default=LISTEN, show_default=True,
    help="Where explain, /metrics and /health are served; port 0 takes a free one.",
)  # fmt: skip
@click.option(
    "--insecure-listen", is_flag=True,
    help="Let other machines reach that port although it asks for no token. Each start warns.",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(LOG_LEVELS), default="info", show_default=True,
    help="Lowest level to log. Log lines go to the standard error.",
)  # fmt: skip
@access_options
def agent_command(
    clusters_path: str | None,
    admin_url: str,
    broker_url: str | None,
    name: str,
    namespaces: tuple[str, ...],
    files: str | None,
    telemetry_topic: str | None,
    listen: str,
    log_level: str,
    connect: Callable[[], ClientConfig],
    *,
    insecure_listen: bool,
) -> None:
    """Watch clusters until interrupted, and answer as a broker does.

    It only reads, and nothing is installed on the clusters. It keeps an hour of history, and
    serves explain and metrics of its own.

    Example: headgate agent --admin-url http://pulsar:8080 --files records
    """
    if clusters_path is not None:
        settings = _of_file(clusters_path)
    else:
        check_needed("broker_url", "--telemetry-topic", is_given=telemetry_topic is not None)
        client = connect()
        if is_given("admin_url"):
            client = replace(client, admin_url=admin_url, url_origin="--admin-url")
        cluster = _cluster(client, name, namespaces, broker_url, telemetry_topic)
        host, port = port_of(listen, "--listen")
        settings = AgentSettings((cluster,), PortSettings(host, port), files or "")
    from headgate.app.agent_daemon import run_agent
    from headgate.app.log_lines import start_logging

    start_logging(log_level)
    run_agent(settings, os.environ, click.echo, is_insecure_allowed=insecure_listen)


def _cluster(
    client: ClientConfig,
    name: str,
    namespaces: tuple[str, ...],
    broker_url: str | None,
    topic: str | None,
) -> ClusterSettings:
    url = broker_url or client.broker_url
    if topic is not None:
        check_telemetry(topic, url, "--telemetry-topic")
    return ClusterSettings(
        check_cluster_name(name), client, namespaces,
        telemetry_topic=topic or "", telemetry_url=url if topic else "",
    )  # fmt: skip


def _of_file(path: str) -> AgentSettings:
    given = [name for name in (*_OF_ONE_CLUSTER, *ACCESS_PARAMETERS) if is_given(name)]
    if given:
        option = _OPTIONS.get(given[0], given[0]).replace("_", "-")
        raise click.UsageError(f"--{option} and --clusters exclude each other: the file has it.")
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(CONFIGURATION_BYTES_MAX + 1)
        text = data.decode()
    except OSError as error:
        raise InputError(f"--clusters {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"--clusters {path} is not UTF-8 text (byte {error.start})") from error
    if len(data) > CONFIGURATION_BYTES_MAX:
        raise InputError(
            f"--clusters {path} is too long: {CONFIGURATION_BYTES_MAX:,} bytes are allowed"
        )
    settings = parse_configuration(text, path)
    if mode & OTHERS and _has_secret(settings):
        raise InputError(
            f"--clusters {path} has a secret, and may be read or written by others "
            f"(mode {stat.S_IMODE(mode):04o}): chmod 600 {path}, or name a file with the secret "
            "(file:///path)"
        )
    return settings


def _has_secret(settings: AgentSettings) -> bool:
    """Whether a secret stands in the settings themselves."""
    credentials = (authentication(each.client, os.environ, _ignore) for each in settings.clusters)
    return is_literal(settings.port.secret_key) or any(each.is_literal for each in credentials)


def _ignore(_: str) -> None:
    """The warnings come again when the agent opens the credentials."""
