"""Which policies and settings a request gave another value, from the rows that it changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from headgate.base.audit_entry import ValueChange
from headgate.metadata.catalog import Change, RowChange
from headgate.metadata.policies import (
    NO_TOPIC_POLICIES,
    CommonPolicies,
    NamespacePolicies,
    TopicPolicies,
)
from headgate.metadata.rows import Kind, NamespaceRow, Row, SettingRow

_NO_NAMESPACE_POLICIES: Final = NamespacePolicies()


def value_changes(changes: Iterable[Change]) -> tuple[ValueChange, ...]:
    """The policies and settings that have another value after these changes. A setting is among
    them only if its values are numbers or yes and no: others may be secrets."""
    return tuple(found for change in changes for row in change.rows for found in _of_row(row))


def _of_row(row: RowChange) -> Iterator[ValueChange]:
    if row.kind is Kind.SETTING:
        before, after = _setting(row.before), _setting(row.after)
        if before != after and _is_plain(before) and _is_plain(after):
            yield ValueChange(row.key, "", before, after)
    elif row.kind is Kind.TOPIC_POLICIES:
        yield from _differences(_topic_policies(row.before), _topic_policies(row.after))
    elif row.kind is Kind.NAMESPACE and row.before is not None and row.after is not None:
        yield from _differences(_namespace_policies(row.before), _namespace_policies(row.after))


def _setting(row: Row | None) -> str | None:
    return row.value if isinstance(row, SettingRow) else None


def _is_plain(value: str | None) -> bool:
    if value is None or value.lower() in ("true", "false"):
        return True
    digits = value.strip().removeprefix("-").replace(".", "", 1)
    return digits.isascii() and digits.isdigit()


def _topic_policies(row: Row | None) -> CommonPolicies:
    return row if isinstance(row, TopicPolicies) else NO_TOPIC_POLICIES


def _namespace_policies(row: Row) -> CommonPolicies:
    return row.policies if isinstance(row, NamespaceRow) else _NO_NAMESPACE_POLICIES


def _differences(before: CommonPolicies, after: CommonPolicies) -> Iterator[ValueChange]:
    for name in _fields(before):
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            for key in dict.fromkeys([*old, *new]):
                if old.get(key) != new.get(key):
                    yield ValueChange(name, str(key), old.get(key), new.get(key))
        else:
            yield ValueChange(name, "", old, new)


def _fields(policies: Struct) -> tuple[str, ...]:
    return policies.__struct_fields__
