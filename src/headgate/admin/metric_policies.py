"""The policy of a namespace about labels on /metrics: which properties of its topics become some.

Path and body are those of Pulsar 4.2 (PIP-447).
"""

from __future__ import annotations

from typing import Any, Final

from headgate.admin import namespace_policies
from headgate.admin.names import existing_namespace
from headgate.admin.operations import Operation
from headgate.admin.policy_routes import PolicyHandlers, policy_routes
from headgate.admin.routing import NAMESPACE_PATH, NO_CONTENT, Call, Reply
from headgate.base.metric_labels import ALLOWED_LABELS, problem_of_labels
from headgate.metadata.errors import not_allowed

_FIELD: Final = "allowed_topic_property_keys_for_metrics"
_SEGMENT: Final = "allowedTopicPropertyKeysForMetrics"
_KEYS: Any = tuple[str, ...]


def stored_keys(keys: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The policy of a body; None removes it.

    Raises:
        RefusalError: 412 if one of them cannot be a label, or they are too many.
    """
    problem = problem_of_labels(keys or ())
    if problem:
        raise not_allowed(f"{_SEGMENT}: {problem}; allowed are {ALLOWED_LABELS}")
    return None if keys is None else tuple(dict.fromkeys(keys))


async def set_keys(call: Call) -> Reply:
    """Replace the properties that become labels; none of them: no property does."""
    name, _ = existing_namespace(call)
    stored = stored_keys(call.decoded(_KEYS))
    catalog = call.facade.catalog
    await call.commit(catalog.plan_namespace_policies(name, **{_FIELD: stored}))
    return NO_CONTENT


ROUTES = policy_routes(
    f"{NAMESPACE_PATH}/{_SEGMENT}",
    f"{_SEGMENT} of a namespace",
    _KEYS,
    PolicyHandlers(namespace_policies.getter(_FIELD), set_keys, namespace_policies.remover(_FIELD)),
    Operation.NAMESPACE_POLICY_READ,
    Operation.NAMESPACE_POLICY_WRITE,
)
