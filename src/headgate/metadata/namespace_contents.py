"""What a namespace without topics still has: grants, and schemas of topics that do not exist.

They go with it. Of tens of thousands most go before it, a bounded number in each change: to remove
100,000 at once held up the event loop for two seconds, and other changes for four.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headgate.base.names import NamespaceName
from headgate.metadata.rows import Kind
from headgate.metadata.schema_plans import removed_schemas
from headgate.metadata.staged_rows import RowValues
from headgate.metadata.state import RowState

ROWS_TOGETHER: Final = 1_000
"""Rows that one change removes: 15 ms of the loop. All versions of a schema go together."""


def contents_of_namespace(state: RowState, name: NamespaceName) -> RowValues:
    """Rows that remove some of the grants on topics and subscriptions of a namespace, and of the
    schemas in it: all of them, if they are :data:`ROWS_TOGETHER` at most, else more than that."""
    rows: RowValues = []
    for kind, key in _last_ones(state, name):
        rows += removed_schemas(state, key) if kind is Kind.SCHEMA else [(kind, key, None)]
        if len(rows) > ROWS_TOGETHER:
            break
    return rows


def _last_ones(state: RowState, name: NamespaceName) -> Iterator[tuple[Kind, str]]:
    """Keys of each kind, the last ones first: to remove the first of very many moves all others."""
    parents = [(Kind.SUBSCRIPTION_GRANTS, str(name))]
    for domain in ("persistent", "non-persistent"):
        parents += [(kind, f"{domain}://{name}") for kind in (Kind.TOPIC_GRANTS, Kind.SCHEMA)]
    for kind, parent in parents:
        for key in state.last_children(kind, parent):
            yield kind, key
