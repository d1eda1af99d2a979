"""What the agent's routes read of a request, and the form of their answers."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headgate.base.names import DOMAINS, InvalidNameError, parse_topic
from headgate.explain.reports import COUNT_DEFAULT, COUNT_MAX


class RefusedError(HTTPException):
    """A request that gets no answer; the text is the reason."""


def topic_of(request: Request) -> str:
    """The full name of the topic in the path.

    Raises:
        RefusedError: it is no name of a topic.
    """
    parts = request.path_params
    domain = parts["domain"]
    if domain not in DOMAINS:
        raise RefusedError(404, f"There is no domain {domain[:80]!r}: {' and '.join(DOMAINS)} are")
    try:
        return parse_topic("{domain}://{tenant}/{namespace}/{topic}".format(**parts)).full
    except InvalidNameError as error:
        raise RefusedError(400, str(error)) from error


def count_of(request: Request) -> int:
    """The parameter ``count``.

    Raises:
        RefusedError: it is not allowed.
    """
    text = request.query_params.get("count", str(COUNT_DEFAULT))
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(COUNT_MAX))
    if not is_number or not 1 <= int(text) <= COUNT_MAX:
        raise RefusedError(400, f"count is {text[:80]!r}: 1 to {COUNT_MAX} is allowed")
    return int(text)


def flag_of(request: Request, name: str) -> bool:
    """A parameter that is true or false; false without it.

    Raises:
        RefusedError: it is neither.
    """
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise RefusedError(400, f"{name} is {text[:80]!r}: true or false is allowed")
    return text == "true"


def as_json(value: Any) -> Response:
    """An answer."""
    return Response(msgspec.json.encode(value), media_type="application/json")


async def refuse(request: Request, error: Exception) -> Response:
    """The answer to a request that fails."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else str(error)
    if status == 404 and not isinstance(error, RefusedError):
        path = request.url.path[:80]
        detail = f"An agent has no {path}: ask a broker of the cluster"
    headers = error.headers if isinstance(error, HTTPException) else None
    body = msgspec.json.encode({"reason": detail})
    return Response(body, status, headers=headers, media_type="application/json")
