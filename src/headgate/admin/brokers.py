"""Routes about the broker: its health, its end, its metadata and dynamic settings."""

from __future__ import annotations

from headgate.admin.clusters import check_cluster
from headgate.admin.operations import Operation
from headgate.admin.routing import (
    EMPTY,
    NO_CONTENT,
    Call,
    Query,
    Reply,
    Route,
    as_json,
    as_text,
)
from headgate.base.input_errors import did_you_mean
from headgate.metadata.errors import RefusalError, not_allowed

_A = "/admin/v2"


async def list_brokers(call: Call) -> Reply:
    """Ids of the active brokers: this one."""
    if "cluster" in call.params:
        check_cluster(call)
    return as_json([call.facade.info.broker_id])


async def identity(call: Call) -> Reply:
    """Which data directory the broker runs on, whatever its addresses and names are now."""
    catalog = call.facade.catalog
    return as_json({"cluster": catalog.clusters()[0], "dataId": catalog.identity.data_id})


async def leader_broker(call: Call) -> Reply:
    """The leader: this broker."""
    info = call.facade.info
    return as_json({"brokerId": info.broker_id, "serviceUrl": info.web_url or info.web_url_tls})


async def ready(call: Call) -> Reply:
    """``ok`` once recovery is done, while the stores work and the disk answers."""
    if not call.facade.is_ready():
        raise RefusalError(500, "Broker is not ready")
    if reason := call.facade.why_unready():
        # The reason may name files of the broker: everybody may ask this.
        knows = call.may(Operation.BROKER_HEALTH, "")
        raise RefusalError(503, reason if knows else "Broker is not ready")
    return as_text("ok")


async def health(call: Call) -> Reply:
    """``ok`` once a commit to the log has worked; ``ok, but`` with a warning if the disk is slow or
    connections are refused."""
    text = await call.facade.check_health()
    return as_text(f"ok, but {text}" if text else "ok")


async def check_backlog_quotas(call: Call) -> Reply:
    """Verify all backlog quotas now; answers when that is done."""
    await call.facade.check_backlog_quotas()
    return NO_CONTENT


async def shut_down(call: Call) -> Reply:
    """Begin to close the broker, as SIGTERM does. Clients lose their connections, and everything
    acknowledged is on disk."""
    call.facade.shut_down()
    return NO_CONTENT


async def version(call: Call) -> Reply:
    """The broker's version, as bare text."""
    return as_text(call.facade.info.version)


async def internal_configuration(call: Call) -> Reply:
    """Where the metadata is. There is no ZooKeeper; the names are Pulsar's."""
    url = call.facade.info.metadata_url
    return as_json(
        {
            "zookeeperServers": url,
            "configurationStoreServers": url,
            "metadataStoreUrl": url,
            "configurationMetadataStoreUrl": url,
            "ledgersRootPath": "/ledgers",
        }
    )


async def dynamic_settings(call: Call) -> Reply:
    """Names of the settings that may be changed while the broker runs."""
    return as_json(list(call.facade.dynamic_settings()))


async def setting_overrides(call: Call) -> Reply:
    """Dynamic settings that were changed, with their values."""
    return as_json(call.facade.catalog.settings())


async def runtime_settings(call: Call) -> Reply:
    """Every supported setting with its present value."""
    return as_json(dict(call.facade.runtime_settings()))


async def set_setting(call: Call) -> Reply:
    """Change a dynamic setting now and for later starts."""
    name, value = call.params["name"], call.params["value"]
    _check_dynamic(call, name, "Can't update non-dynamic configuration")
    call.facade.check_setting(name, value)
    await call.commit(call.facade.catalog.plan_setting(name, value))
    return EMPTY


async def reset_setting(call: Call) -> Reply:
    """Reset a dynamic setting to its start-up value."""
    name = call.params["name"]
    _check_dynamic(call, name, "Can't delete non-dynamic configuration")
    call.facade.check_setting(name, None)
    await call.commit(call.facade.catalog.plan_setting(name, None))
    return EMPTY


def _check_dynamic(call: Call, name: str, refusal: str) -> None:
    dynamic = call.facade.dynamic_settings()
    if name in dynamic:
        return
    if name in call.facade.runtime_settings():
        raise not_allowed(f"{refusal}: {name} is read when the broker starts, and only then")
    hint = did_you_mean(name, dynamic)
    raise not_allowed(f"{refusal}: there is no setting {name[:80]!r}{hint}")


_R = Operation.BROKER_READ
_SR, _SW = Operation.SETTINGS_READ, Operation.SETTINGS_WRITE
_CONFIG = f"{_A}/brokers/configuration"
_SHUTDOWN = (
    Query("maxConcurrentUnloadPerSec", int, 0, "Has no effect: one broker moves no topic"),
    Query("forcedTerminateTopic", bool, True, "Has no effect: all clients are disconnected"),
)

ROUTES = (
    Route("GET", f"{_A}/brokers", _R, list_brokers, "List the brokers", reply=list[str]),
    Route("GET", f"{_A}/brokers/{{cluster}}", _R, list_brokers,
          "List a cluster's brokers", reply=list[str]),
    Route("GET", f"{_A}/headgate/identity", Operation.BROKER_IDENTITY, identity,
          "The broker's cluster, and the id of its data directory", reply=dict[str, str]),
    Route("GET", f"{_A}/brokers/leaderBroker", _R, leader_broker,
          "The leader broker", reply=dict[str, str]),
    Route("GET", f"{_A}/brokers/ready", Operation.BROKER_READY, ready,
          "Whether the broker serves", reply=str),
    Route("GET", f"{_A}/brokers/health", Operation.BROKER_HEALTH, health,
          "Whether a commit works", reply=str),
    Route("GET", f"{_A}/brokers/backlog-quota-check", Operation.BROKER_QUOTAS,
          check_backlog_quotas, "Verify all backlog quotas now"),
    Route("POST", f"{_A}/brokers/shutdown", Operation.BROKER_SHUTDOWN, shut_down,
          "Close the broker", query=_SHUTDOWN),
    Route("GET", f"{_A}/brokers/version", Operation.BROKER_IDENTITY, version,
          "The broker's version", reply=str),
    Route("GET", f"{_A}/brokers/internal-configuration", _R, internal_configuration,
          "Where the metadata is", reply=dict[str, str]),
    Route("GET", _CONFIG, _SR, dynamic_settings, "List the dynamic settings", reply=list[str]),
    Route("GET", f"{_CONFIG}/values", _SR, setting_overrides,
          "Dynamic settings that were changed", reply=dict[str, str]),
    Route("GET", f"{_CONFIG}/runtime", _SR, runtime_settings,
          "All settings with their present values", reply=dict[str, str]),
    Route("POST", f"{_CONFIG}/{{name}}/{{value}}", _SW, set_setting, "Change a dynamic setting"),
    Route("DELETE", f"{_CONFIG}/{{name}}", _SW, reset_setting,
          "Reset a dynamic setting to its start-up value"),
)  # fmt: skip
