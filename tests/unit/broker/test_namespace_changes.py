"""The changes of a namespace are kept once, up to a bound."""

from __future__ import annotations

from headgate.base.text_memory import text_bytes
from headgate.broker.namespace_changes import (
    CHANGES_MAX,
    NAMES_BYTES_MAX,
    NamespaceChanges,
    TopicChange,
)


def test_each_goes_on_from_its_own_place() -> None:
    changes = NamespaceChanges()
    first, second = TopicChange("a", True), TopicChange("a", False)
    changes.add([first])
    assert (changes.end, len(changes)) == (1, 1)
    changes.add([second])
    assert changes.since(0) == [first, second]
    assert changes.since(1) == [second]
    assert changes.since(2) == []
    changes.forget_before(1)
    changes.forget_before(0)
    assert changes.since(0) is None
    assert changes.since(1) == [second]
    assert (changes.end, len(changes)) == (2, 1)


def test_the_oldest_of_very_many_are_forgotten() -> None:
    changes = NamespaceChanges()
    for number in range(3 * CHANGES_MAX):
        changes.add([TopicChange(str(number), True)])
        assert len(changes) <= CHANGES_MAX
    assert changes.end == 3 * CHANGES_MAX
    assert changes.since(0) is None
    latest = changes.since(changes.end - 10)
    assert latest is not None
    assert [int(each.name) for each in latest] == [*range(changes.end - 10, changes.end)]
    changes.add(TopicChange(str(number), True) for number in range(10 * CHANGES_MAX))
    assert len(changes) == CHANGES_MAX // 2


def test_the_oldest_are_forgotten_for_long_names() -> None:
    changes = NamespaceChanges()
    name = "\U0001f600" * 512
    for _ in range(CHANGES_MAX):
        changes.add([TopicChange(name, True)])
        assert changes.names_bytes == len(changes) * text_bytes(name) <= NAMES_BYTES_MAX
    assert changes.end == CHANGES_MAX
    assert len(changes) >= NAMES_BYTES_MAX // text_bytes(name) // 2
    changes.add([TopicChange(name, True)] * CHANGES_MAX)
    assert 0 < changes.names_bytes <= NAMES_BYTES_MAX // 2
    changes.forget_before(changes.end)
    assert (len(changes), changes.names_bytes) == (0, 0)
