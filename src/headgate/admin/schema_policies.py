"""Policies about schemas: of a namespace, and of a topic.

Their routes differ from those of other policies as Pulsar's do: some are replaced by PUT, and not
all can be removed.
"""

from __future__ import annotations

from typing import TypeVar

from headgate.admin.names import existing_namespace
from headgate.admin.operations import Operation
from headgate.admin.queries import APPLIED
from headgate.admin.routing import (
    EMPTY,
    NAMESPACE_PATH,
    NO_CONTENT,
    TOPIC_PATH,
    Call,
    Handler,
    Reply,
    Route,
    as_json,
)
from headgate.admin.topic_policies import policy_topic, remover
from headgate.base.schema_types import AutoUpdateStrategy, CompatibilityStrategy
from headgate.metadata.errors import RefusalError

_UNDEFINED = CompatibilityStrategy.UNDEFINED
_Strategy = TypeVar("_Strategy", CompatibilityStrategy, AutoUpdateStrategy)


def defined(strategy: CompatibilityStrategy | None) -> CompatibilityStrategy | None:
    """A strategy as it is stored: UNDEFINED is none."""
    return None if strategy is _UNDEFINED else strategy


async def get_namespace_strategy(call: Call) -> Reply:
    """The strategy that is set on a namespace."""
    _, row = existing_namespace(call)
    return as_json(row.policies.schema_compatibility_strategy or _UNDEFINED)


async def set_namespace_strategy(call: Call) -> Reply:
    """Replace the strategy of a namespace."""
    strategy = _strategy_in(call, CompatibilityStrategy)
    return await _commit(call, schema_compatibility_strategy=defined(strategy))


async def get_auto_update_strategy(call: Call) -> Reply:
    """The older policy of a namespace, which counts if the newer one is not set."""
    _, row = existing_namespace(call)
    found = row.policies.schema_auto_update_compatibility_strategy
    return NO_CONTENT if found is None else as_json(found)


async def set_auto_update_strategy(call: Call) -> Reply:
    """Replace the older policy of a namespace."""
    strategy = _strategy_in(call, AutoUpdateStrategy)
    return await _commit(call, schema_auto_update_compatibility_strategy=strategy)


async def get_auto_update(call: Call) -> Reply:
    """Whether clients may bring new definitions: what is set, else the broker's setting."""
    name, _ = existing_namespace(call)
    return as_json(call.facade.namespace_schema_rules(name).auto_update)


async def set_auto_update(call: Call) -> Reply:
    """Set whether clients may bring new definitions."""
    allowed: bool | None = call.decoded(bool)
    return await _commit(call, is_allow_auto_update_schema=allowed)


async def get_namespace_validation(call: Call) -> Reply:
    """Whether a namespace, or (``applied=true``) the broker, enforces validation."""
    name, row = existing_namespace(call)
    if call.flag("applied"):
        return as_json(call.facade.namespace_schema_rules(name).validation_enforced)
    return as_json(row.policies.schema_validation_enforced)


async def set_namespace_validation(call: Call) -> Reply:
    """Set whether a namespace enforces validation."""
    enforced: bool | None = call.decoded(bool)
    return await _commit(call, schema_validation_enforced=bool(enforced))


def _strategy_in(call: Call, type_: type[_Strategy]) -> _Strategy | None:
    """The strategy in the body; None if there is none.

    Raises:
        RefusalError: 400 for an unknown one.
    """
    text: str | None = call.decoded(str)
    if text is None:
        return None
    for each in type_:
        if each.value == text:
            return each
    allowed = ", ".join(each.value for each in type_)
    raise RefusalError(400, f"Unknown strategy {text[:80]!r}: allowed are {allowed}")


async def _commit(call: Call, **policy: object) -> Reply:
    name, _ = existing_namespace(call)
    await call.commit(call.facade.catalog.plan_namespace_policies(name, **policy))
    return NO_CONTENT


async def get_topic_strategy(call: Call) -> Reply:
    """The strategy of a topic; an empty 200 if it is not set."""
    topic = policy_topic(call)
    if call.flag("applied"):
        return as_json(call.facade.schema_rules(topic).strategy)
    found = call.facade.catalog.topic_policies(topic).schema_compatibility_strategy
    return EMPTY if found is None else as_json(found)


async def get_topic_validation(call: Call) -> Reply:
    """Whether a topic enforces validation, or (``applied=true``) what is in force."""
    topic = policy_topic(call)
    if call.flag("applied"):
        return as_json(call.facade.schema_rules(topic).validation_enforced)
    return as_json(bool(call.facade.catalog.topic_policies(topic).schema_validation_enforced))


async def set_topic_strategy(call: Call) -> Reply:
    """Replace the strategy of a topic."""
    topic = policy_topic(call)
    strategy = _strategy_in(call, CompatibilityStrategy)
    change = call.facade.catalog.plan_topic_policies(
        topic, schema_compatibility_strategy=defined(strategy)
    )
    await call.commit(change)
    return NO_CONTENT


async def set_topic_validation(call: Call) -> Reply:
    """Set whether a topic enforces validation."""
    topic = policy_topic(call)
    enforced: bool | None = call.decoded(bool)
    change = call.facade.catalog.plan_topic_policies(
        topic, schema_validation_enforced=bool(enforced)
    )
    await call.commit(change)
    return NO_CONTENT


_NAMESPACE_READ, _NAMESPACE_WRITE = (
    Operation.NAMESPACE_POLICY_READ,
    Operation.NAMESPACE_POLICY_WRITE,
)
_TOPIC_READ, _TOPIC_WRITE = Operation.TOPIC_POLICY_READ, Operation.TOPIC_POLICY_WRITE
_STRATEGY, _VALIDATION = "schemaCompatibilityStrategy", "schemaValidationEnforced"
_OLDER, _AUTO_UPDATE = "schemaAutoUpdateCompatibilityStrategy", "isAllowAutoUpdateSchema"
_remove_topic_strategy: Handler = remover("schema_compatibility_strategy")

ROUTES = (
    Route("GET", f"{NAMESPACE_PATH}/{_STRATEGY}", _NAMESPACE_READ, get_namespace_strategy,
          f"Get {_STRATEGY} of a namespace", reply=CompatibilityStrategy),
    Route("PUT", f"{NAMESPACE_PATH}/{_STRATEGY}", _NAMESPACE_WRITE, set_namespace_strategy,
          f"Set {_STRATEGY} of a namespace", body=CompatibilityStrategy),
    Route("GET", f"{NAMESPACE_PATH}/{_OLDER}", _NAMESPACE_READ, get_auto_update_strategy,
          f"Get {_OLDER} of a namespace", reply=AutoUpdateStrategy),
    Route("PUT", f"{NAMESPACE_PATH}/{_OLDER}", _NAMESPACE_WRITE, set_auto_update_strategy,
          f"Set {_OLDER} of a namespace", body=AutoUpdateStrategy),
    Route("GET", f"{NAMESPACE_PATH}/{_AUTO_UPDATE}", _NAMESPACE_READ, get_auto_update,
          f"Get {_AUTO_UPDATE} of a namespace", reply=bool),
    Route("POST", f"{NAMESPACE_PATH}/{_AUTO_UPDATE}", _NAMESPACE_WRITE, set_auto_update,
          f"Set {_AUTO_UPDATE} of a namespace", body=bool),
    Route("GET", f"{NAMESPACE_PATH}/{_VALIDATION}", _NAMESPACE_READ, get_namespace_validation,
          f"Get {_VALIDATION} of a namespace", reply=bool, query=(APPLIED,)),
    Route("POST", f"{NAMESPACE_PATH}/{_VALIDATION}", _NAMESPACE_WRITE, set_namespace_validation,
          f"Set {_VALIDATION} of a namespace", body=bool),
    Route("GET", f"{TOPIC_PATH}/{_STRATEGY}", _TOPIC_READ, get_topic_strategy,
          f"Get {_STRATEGY} of a topic", reply=CompatibilityStrategy, query=(APPLIED,)),
    Route("PUT", f"{TOPIC_PATH}/{_STRATEGY}", _TOPIC_WRITE, set_topic_strategy,
          f"Set {_STRATEGY} of a topic", body=CompatibilityStrategy),
    Route("DELETE", f"{TOPIC_PATH}/{_STRATEGY}", _TOPIC_WRITE, _remove_topic_strategy,
          f"Remove {_STRATEGY} of a topic"),
    Route("GET", f"{TOPIC_PATH}/{_VALIDATION}", _TOPIC_READ, get_topic_validation,
          f"Get {_VALIDATION} of a topic", reply=bool, query=(APPLIED,)),
    Route("POST", f"{TOPIC_PATH}/{_VALIDATION}", _TOPIC_WRITE, set_topic_validation,
          f"Set {_VALIDATION} of a topic", body=bool),
)  # fmt: skip
