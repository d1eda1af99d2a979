"""What properties of subscriptions take is given back as it was counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headgate.base.names import TopicName, parse_topic
from headgate.base.text_memory import PROPERTY_BYTES, properties_bytes
from headgate.engine.property_budget import PropertyBudget


class Holder:
    """A subscription with a name of its topic and its properties."""

    removed = False

    def __init__(self, topic: str, **properties: str) -> None:
        name: TopicName = parse_topic(topic)
        self.topic: Any = SimpleNamespace(name=name)
        self.properties = properties


def test_they_count_for_their_tenant_until_they_are_gone() -> None:
    budget = PropertyBudget()
    one, other = Holder("persistent://a/ns/t", k="v"), Holder("persistent://b/ns/t", k="vv")
    for _ in range(2):
        budget.measure(one)
        budget.measure(other)
    assert budget.by_tenant == {"a": PROPERTY_BYTES + 2, "b": PROPERTY_BYTES + 3}
    one.properties = {"k": "\U0001f600"}
    assert budget.of(one) == PROPERTY_BYTES + 2
    budget.measure(one)
    assert budget.of(one) == budget.by_tenant["a"] == PROPERTY_BYTES + 1 + 4 + 4
    budget.forget(one)
    budget.forget(one)
    assert dict(budget.by_tenant) == {"b": PROPERTY_BYTES + 3}
    other.removed = True
    budget.measure(other)
    assert not budget.by_tenant
    assert budget.of(other) == 0


def test_those_without_any_are_not_kept() -> None:
    budget = PropertyBudget()
    budget.measure(Holder("persistent://a/ns/t"))
    assert not budget.by_tenant
    assert properties_bytes({}) == 0
