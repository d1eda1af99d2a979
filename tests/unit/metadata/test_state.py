"""Two views of the rows: what is durable, and what will be."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from headgate.base.errors import CorruptionError, InvariantError
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.policies import NamespacePolicies, Persistence
from headgate.metadata.rows import (
    Bundles,
    CounterRow,
    Kind,
    NamespaceRow,
    Row,
    SettingRow,
    TenantRow,
)
from headgate.metadata.state import Change, RowChange, RowState, parent_of

TENANT, SETTING = Kind.TENANT, Kind.SETTING


def test_staged_rows_are_seen_by_plans_and_not_by_readers() -> None:
    state = RowState({})
    change = state.stage([(TENANT, "acme", TenantRow())])
    assert state.get(TENANT, "acme") is None
    assert state.children(TENANT, "") == []
    assert state.staged(TENANT, "acme") == TenantRow()
    assert list(state.staged_children(TENANT, "")) == ["acme"]
    state.apply(change)
    assert state.get(TENANT, "acme") == TenantRow()
    assert list(state.staged_children(TENANT, "")) == ["acme"]
    assert state.in_flight_count == 0


def test_a_staged_removal_hides_the_row_from_plans_only() -> None:
    state = RowState({})
    state.apply(state.stage([(TENANT, "acme", TenantRow())]))
    change = state.stage([(TENANT, "acme", None)])
    assert change.rows[0].before == TenantRow()
    assert state.children(TENANT, "") == ["acme"]
    assert list(state.staged_children(TENANT, "")) == []
    state.apply(change)
    assert state.children(TENANT, "") == []


def test_a_later_change_of_the_same_row_stays_staged_when_the_first_is_applied() -> None:
    state = RowState({})
    first = state.stage([(SETTING, "a", SettingRow("1"))])
    second = state.stage([(SETTING, "a", SettingRow("2"))])
    state.apply(first)
    assert state.get(SETTING, "a") == SettingRow("1")
    assert state.staged(SETTING, "a") == SettingRow("2")
    state.apply(second)
    assert state.get(SETTING, "a") == SettingRow("2")


def test_staged_rows_are_counted_without_a_look_at_those_in_flight() -> None:
    class Unseen(dict[object, object]):
        def items(self) -> object:
            raise AssertionError("thousands of rows of others may be in flight")

    state = RowState({})
    state.stage([(TENANT, name, TenantRow()) for name in "ab"])
    state._overlay = Unseen(state._overlay)  # type: ignore[assignment]
    assert state.staged_count(TENANT, "") == 2
    assert state.staged_count(SETTING, "") == 0


def test_changes_are_applied_in_order() -> None:
    state = RowState({})
    state.stage([(SETTING, "a", SettingRow("1"))])
    second = state.stage([(SETTING, "b", SettingRow("2"))])
    with pytest.raises(InvariantError):
        state.apply(second)


def test_abandoning_forgets_everything_in_flight() -> None:
    state = RowState({})
    state.apply(state.stage([(SETTING, "a", SettingRow("1"))]))
    state.stage([(SETTING, "a", None)])
    state.stage([(SETTING, "b", SettingRow("2"))])
    state.abandon_all()
    assert state.in_flight_count == 0
    assert state.staged(SETTING, "a") == SettingRow("1")
    assert state.staged(SETTING, "b") is None


def test_rows_belong_to_namespaces_and_tenants() -> None:
    assert parent_of(Kind.TOPIC, "persistent://a/b/c") == "persistent://a/b"
    assert parent_of(Kind.NAMESPACE, "a/b") == "a"
    assert parent_of(Kind.TENANT, "a") == ""


@pytest.mark.parametrize(
    ("kind", "value"), [("nonsense", b"{}"), ("topic", b"not json"), ("topic", b'{"name":"x"}')]
)
def test_a_row_that_cannot_be_read_is_corruption_with_its_place(kind: str, value: bytes) -> None:
    with pytest.raises(CorruptionError, match="key='some key'"):
        RowState({(kind, "some key"): value})


TOPIC = "persistent://t/n/x"


@pytest.mark.parametrize(
    ("kind", "key", "value", "why"),
    [
        ("topic", TOPIC, b'{"name":"persistent://t/n/y","number":1,"created_ms":1}', "its name is"),
        ("topic", TOPIC, f'{{"name":"{TOPIC}","number":0,"created_ms":1}}'.encode(), "number is 0"),
        (
            "topic",
            TOPIC,
            f'{{"name":"{TOPIC}","number":{1 << 32},"created_ms":1}}'.encode(),
            "1 to 4294967295 is possible",
        ),
        ("schema", "x", b'{"type":1,"data":"","created_ms":1}', "no name of a topic"),
        ("namespace", "t/n", b'{"policies":' * 5_000, "recursion"),
    ],
)
def test_a_row_that_no_release_wrote_is_named(kind: str, key: str, value: bytes, why: str) -> None:
    """A number beyond the log's ended the broker at its first checkpoint, the others its start."""
    with pytest.raises(CorruptionError, match=why) as caught:
        RowState({(kind, key): value})
    assert f"kind='{kind}' key='{key}'" in str(caught.value)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["stage", "apply", "abandon"]),
            st.sampled_from("abc"),
            st.none() | st.integers(0, 9),
        ),
        max_size=40,
    )
)
def test_the_durable_view_is_always_what_a_restart_finds(
    steps: list[tuple[str, str, int | None]],
) -> None:
    store, state = MemoryStore(), RowState({})
    in_flight: list[Change] = []
    staged: dict[str, Row] = {}
    for what, key, number in steps:
        if what == "stage":
            row = None if number is None else SettingRow(str(number))
            in_flight.append(state.stage([(SETTING, key, row)]))
            staged.pop(key, None)
            if row is not None:
                staged[key] = row
        elif what == "apply" and in_flight:
            change = in_flight.pop(0)
            store.commit(change.writes)
            state.apply(change)
        elif what == "abandon":
            in_flight.clear()
            state.abandon_all()
            staged = dict(state.rows(SETTING))
        assert {key: state.staged(SETTING, key) for key in staged} == staged
        assert sorted(state.staged_children(SETTING, "")) == sorted(staged)
        assert state.staged_count(SETTING, "") == len(staged)
        restarted = RowState(store.load())
        assert dict(restarted.rows(SETTING)) == dict(state.rows(SETTING))
        assert restarted.children(SETTING, "") == state.children(SETTING, "")


def test_what_a_start_would_not_read_as_it_is_written_is_not_stored() -> None:
    """A single row that no start can read keeps the broker from starting."""
    rate = Persistence(managed_ledger_max_mark_delete_rate=float("inf"))
    row = NamespaceRow(
        bundles=Bundles((), 0), clusters=(), policies=NamespacePolicies(persistence=rate)
    )
    with pytest.raises(ValueError, match="namespace 'a/b' is not read as it is written"):
        assert RowChange(Kind.NAMESPACE, "a/b", None, row).write
    with pytest.raises(ValueError, match="Expected `int`, got `float`"):
        assert RowChange(Kind.COUNTER, "revision", None, CounterRow(2.5)).write  # type: ignore[arg-type]
