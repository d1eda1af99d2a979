"""The description of the API (OpenAPI 3.1), built from the routes at its first request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from headgate.admin.meanings import add_meanings
from headgate.admin.operations import Operation
from headgate.admin.routing import BYTES, JSON, Call, Query, Reply, Route

_PARAMETER = re.compile(r"\{(\w+)\}")
_ERROR = {
    "description": "Refused, with a reason",
    "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_ERROR_SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}},
    "required": ["reason"],
}


def description_route(routes: Iterable[Route]) -> Route:
    """The route that describes ``routes`` and itself."""
    documents: dict[str, bytes] = {}

    async def openapi(call: Call) -> Reply:
        """The description as JSON."""
        version = call.facade.info.version
        if version not in documents:
            documents[version] = msgspec.json.encode(describe((*routes, route), version))
        return Reply(200, documents[version], JSON)

    route = Route(
        "GET",
        "/admin/v2/openapi.json",
        Operation.DESCRIPTION,
        openapi,
        "This description",
        reply=dict[str, Any],
    )
    return route


def describe(routes: tuple[Route, ...], version: str) -> dict[str, Any]:
    """The OpenAPI document of ``routes``."""
    types = [type_ for route in routes for type_ in (route.body, route.reply) if type_ is not None]
    schemas, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    structs = [
        type_ for type_ in types if isinstance(type_, type) and issubclass(type_, msgspec.Struct)
    ]
    add_meanings(structs, components)
    remaining = iter(schemas)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        body = next(remaining) if route.body is not None else None
        reply = next(remaining) if route.reply is not None else None
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, body, reply)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headgate admin API", "version": version},
        "paths": paths,
        "components": {"schemas": {**components, "Error": _ERROR_SCHEMA}},
    }


def _operation(route: Route, body: Any, reply: Any) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done"}
    if reply is not None:
        success["content"] = {BYTES if route.reply is bytes else JSON: {"schema": reply}}
    described: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.method.lower()} {route.path}",
        "x-headgate-operation": route.operation.value,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in _PARAMETER.findall(route.path)
        ]
        + [_query_parameter(query) for query in route.query],
        "responses": {"2XX": success, "4XX": _ERROR, "5XX": _ERROR},
    }
    if body is not None:
        described["requestBody"] = {"content": {JSON: {"schema": body}}}
    return described


def _query_parameter(query: Query) -> dict[str, Any]:
    return {
        "name": query.name,
        "in": "query",
        "required": False,
        "description": query.summary,
        "schema": {**msgspec.json.schema(query.type), "default": query.default},
    }
