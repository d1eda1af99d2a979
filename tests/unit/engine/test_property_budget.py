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
        self.topic: Any = SimpleNamespace(name=name, log=SimpleNamespace(number=hash(topic)))
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


def test_those_of_a_topic_that_is_unloaded_count_until_it_is_loaded_again() -> None:
    """A tenant that unloads its topics again and again could store properties without a bound."""
    budget = PropertyBudget()
    names = ("persistent://a/ns/t", "persistent://a/ns/u")
    for name in names:
        for holder in [Holder(name, k="v"), Holder(name, k="v")]:
            budget.measure(holder)
            budget.unloaded(holder)
            budget.forget(holder)
    each = 2 * (PROPERTY_BYTES + 2)
    assert budget.by_tenant == {"a": 2 * each}
    for _ in range(2):
        budget.loaded_or_deleted(parse_topic(names[0]), hash(names[0]))
    assert budget.by_tenant == {"a": each}
    budget.loaded_or_deleted(parse_topic(names[1]), hash(names[1]))
    assert not budget.by_tenant


def test_those_without_any_are_not_kept() -> None:
    budget = PropertyBudget()
    budget.measure(Holder("persistent://a/ns/t"))
    assert not budget.by_tenant
    assert properties_bytes({}) == 0
