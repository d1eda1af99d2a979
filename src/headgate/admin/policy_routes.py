"""The three routes of a policy: GET shows it, POST replaces it, DELETE removes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.admin.operations import Operation
from headgate.admin.routing import Handler, Query, Route


@dataclass(frozen=True, slots=True)
class PolicyHandlers:
    """What carries out the three requests of one policy."""

    get: Handler
    post: Handler
    delete: Handler


def policy_routes(
    path: str,
    name: str,
    type_: Any,
    handlers: PolicyHandlers,
    read: Operation,
    write: Operation,
    query: tuple[Query, ...] = (),
) -> tuple[Route, ...]:
    """The routes of a policy of ``type_``. ``name`` names it in their summaries, ``read`` and
    ``write`` are the operations that authorization decides about, ``query`` are the parameters of
    GET."""
    return (
        Route("GET", path, read, handlers.get, f"Get {name}", reply=type_, query=query),
        Route("POST", path, write, handlers.post, f"Set {name}", body=type_),
        Route("DELETE", path, write, handlers.delete, f"Remove {name}"),
    )
