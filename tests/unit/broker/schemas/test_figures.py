"""What was asked of the registry is counted by namespace, for those that exist."""

from __future__ import annotations

from headgate.base.names import NamespaceName
from headgate.broker.schemas.figures import SchemaFigures, SchemaOperation


def namespace(number: int) -> NamespaceName:
    return NamespaceName.parse(f"acme/n{number}")


def test_operations_and_comparisons() -> None:
    figures, one, other = SchemaFigures(lambda _: True), namespace(1), namespace(2)
    figures.done(one, SchemaOperation.PUT, 3)
    figures.done(one, SchemaOperation.PUT, 4)
    figures.failed(one, SchemaOperation.PUT)
    figures.compared(one, is_compatible=True)
    figures.compared(one, is_compatible=False)
    figures.done(other, SchemaOperation.GET, 0)
    (name, found), (_, others) = figures.by_namespace()
    put = found.operations[SchemaOperation.PUT]
    assert (name, put.done, put.took_ns, put.failed) == (one, 2, 7, 1)
    assert (found.compatible, found.incompatible) == (1, 1)
    assert others.operations[SchemaOperation.GET].done == 1
    assert others.operations[SchemaOperation.DELETE].done == 0


def test_what_clients_ask_about_namespaces_that_are_not_there_takes_no_memory() -> None:
    figures = SchemaFigures(lambda _: False)
    figures.done(namespace(1), SchemaOperation.GET, 0)
    figures.failed(namespace(1), SchemaOperation.PUT)
    figures.compared(namespace(1), is_compatible=True)
    assert figures.by_namespace() == []


def test_namespaces_that_are_gone_make_room() -> None:
    there: set[NamespaceName] = set()
    figures = SchemaFigures(there.__contains__)
    for number in range(1_000):
        there.add(namespace(number))
        figures.done(namespace(number), SchemaOperation.GET, 0)
        there.discard(namespace(number - 2))
    assert [name for name, _ in figures.by_namespace()] == [namespace(998), namespace(999)]
    assert len(figures._known) <= 64
