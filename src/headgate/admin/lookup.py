"""HTTP lookup: this broker serves every topic, so nothing is redirected."""

from __future__ import annotations

from headgate.admin.names import topic_name
from headgate.admin.operations import Operation
from headgate.admin.routing import Call, Reply, Route, as_json, as_text
from headgate.metadata.bundles import bundle_of
from headgate.metadata.errors import not_found


async def lookup(call: Call) -> Reply:
    """Addresses of the broker that serves a topic, which need not exist yet."""
    topic = topic_name(call)
    if call.facade.catalog.namespace(topic.namespace) is None:
        raise not_found("Namespace not found")
    info = call.facade.info
    tls = {"httpUrlTls": info.web_url_tls} if info.web_url_tls else {}
    return as_json(
        {
            "brokerUrl": info.broker_url,
            "httpUrl": info.web_url,
            **tls,
            "nativeUrl": info.broker_url,
            "brokerUrlSsl": info.broker_url_tls,
            "brokerUrlTls": info.broker_url_tls,
        }
    )


async def bundle(call: Call) -> Reply:
    """The hash range of its namespace that a topic falls into."""
    topic = topic_name(call)
    row = call.facade.catalog.namespace(topic.namespace)
    if row is None:
        raise not_found("Namespace not found")
    return as_text(bundle_of(row.bundles, topic.full))


_PATH = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"

ROUTES = (
    Route("GET", _PATH, Operation.TOPIC_LOOKUP, lookup, "Look a topic up", reply=dict[str, str]),
    Route("GET", f"{_PATH}/bundle", Operation.TOPIC_LOOKUP, bundle,
          "The bundle of a topic", reply=str),
)  # fmt: skip
