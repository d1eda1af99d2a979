"""Sends long answers in parts, so that neither the loop nor the memory holds a whole one.

A part is made when the client has read the one before. A short answer is one part with its length,
as before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from starlette.types import Scope, Send

from headgate.admin.json_pieces import (
    Encoded,
    emptied_in_steps,
    emptied_pieces,
    names_pieces,
    pieces_of,
)
from headgate.admin.routing import JSON, Call, Reply
from headgate.admin.shared_answers import SharedAnswer, accepted_age_s
from headgate.base.gathered import taken
from headgate.base.names import TopicName
from headgate.base.units import KIB, NS_PER_S
from headgate.facade.protocol import Facade
from headgate.metadata.errors import RefusalError

PART_BYTES: Final = 64 * KIB
"""Bytes of one part; an answer that is not longer has its length in a header."""

PARTS_HELD: Final = 3
"""Parts of a long answer that are there at the same time: one is sent, and two are made before."""

STEP_PIECES: Final = 64
STEP_BYTES: Final = 16 * KIB
"""Pieces, or bytes, that are made without a pause: a quarter of a millisecond."""

STEP_FREED: Final = 64
"""Items of a large answer that are freed without a pause."""


PAGE_NAMES: Final = 128
STEP_PAGES: Final = 2
"""Names of one page, and pages that are made without a pause."""


def pages(after: Callable[[str, int], list[str]]) -> Iterator[list[str]]:
    """All names of a list in pages; ``after`` gives a number of those behind a name.

    A name that is there all the time is listed once; one that comes or goes meanwhile may be.
    """
    last = ""
    while True:
        page = after(last, PAGE_NAMES)
        yield page
        if len(page) < PAGE_NAMES:
            return
        last = page[-1]


async def answer_names(call: Call, names: Iterable[list[str]]) -> Reply:
    """Pages of names as a reply: one array."""
    return await answer(call, names_pieces(names), step_pieces=STEP_PAGES)


async def answer_emptied(call: Call, value: Any, names: frozenset[str]) -> Reply:
    """The JSON of ``value`` as a reply. ``names`` are members with very many items, as of
    :func:`emptied_pieces`; they are freed in slices, also if the client leaves meanwhile."""
    reply = await answer(call, emptied_pieces(value, names))
    return replace(reply, discard=lambda: discard(call.facade, value, names))


async def discard(facade: Facade, value: Any, names: frozenset[str]) -> None:
    """Free the members of ``value`` with these ``names`` in slices."""
    for number, _ in enumerate(emptied_in_steps(value, names), start=1):
        if number % STEP_FREED == 0:
            await facade.give_way()


async def answer(call: Call, pieces: Iterator[bytes], step_pieces: int = STEP_PIECES) -> Reply:
    """The JSON in ``pieces`` as a reply: whole if it is short. ``step_pieces`` are made without a
    pause. A long one is charged with the parts that are there at the same time, unless as much is
    charged for it.

    Raises:
        RefusalError: 503, there is no memory.
    """
    parts = _parts(call.facade, pieces, step_pieces)
    first = await anext(parts)
    more_bytes = PARTS_HELD * len(first) - sum(size_bytes for size_bytes, _ in call.reserved)
    if len(first) >= PART_BYTES and more_bytes > 0:
        await call.reserve(more_bytes)
    second = await anext(parts, None)
    if second is None:
        return Reply(200, first, JSON)
    return Reply(200, b"", JSON, parts=_chained([second, first], parts))


async def answer_shared(
    call: Call, name: str, make: Callable[[], Awaitable[Any]], step_pieces: int = STEP_PIECES
) -> Reply:
    """The JSON of what ``make`` returns as a reply, which other clients may get, too, as
    :mod:`headgate.admin.shared_answers` says. ``name`` stands for all that ``make`` depends on."""
    age_s_max = accepted_age_s(call.headers)
    if age_s_max is None:
        return await answer(call, pieces_of(await make()), step_pieces)

    async def parts() -> AsyncIterator[bytes]:
        return _parts(call.facade, pieces_of(await make()), step_pieces)

    found = await call.shared.get(name, age_s_max, call.clock.monotonic_ns, parts)
    if not isinstance(found, SharedAnswer):
        return Reply(200, b"", JSON, parts=found)
    age_s = (call.clock.monotonic_ns() - found.made_ns) // NS_PER_S
    headers = {"age": str(age_s), "etag": found.tag, "vary": "accept-encoding"}
    if found.tag in call.headers.get("if-none-match", ""):
        return Reply(304, headers=headers)
    body = found.body
    if "gzip" in call.headers.get("accept-encoding", ""):
        body = found.compressed
        headers["content-encoding"] = "gzip"
    if len(body) <= PART_BYTES:
        return Reply(200, body, JSON, headers)
    return Reply(200, b"", JSON, headers, parts=_sliced(body))


async def _sliced(body: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(body), PART_BYTES):
        yield body[begin : begin + PART_BYTES]


async def encoded(call: Call, pieces: Iterator[bytes]) -> Encoded:
    """The JSON in ``pieces``, for a part of a larger answer."""
    return Encoded([part async for part in _parts(call.facade, pieces)])


async def reserve_for(call: Call, topics: Sequence[TopicName]) -> None:
    """Wait for memory for the statistics of all these topics together.

    Raises:
        RefusalError: 503, there is none.
    """
    size_bytes = 0
    for number, topic in enumerate(topics, start=1):
        size_bytes += call.facade.answer_bytes(topic)
        if number % STEP_PIECES == 0:
            await call.facade.give_way()
    await call.reserve(size_bytes)


async def _chained(made: list[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The parts that are made, the last one first, and those that follow. None is kept."""
    while made:
        yield made.pop()
    async for part in rest:
        yield part


async def _parts(
    facade: Facade, pieces: Iterator[bytes], step_pieces: int = STEP_PIECES
) -> AsyncIterator[bytes]:
    """The pieces joined; one empty part if there are none."""
    gathered: list[bytes] = []
    size = count = step_size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        step_size += len(piece)
        count += 1
        if count >= step_pieces or step_size >= STEP_BYTES:
            await facade.give_way()
            count = step_size = 0
        if size >= PART_BYTES:
            yield taken(gathered)
            size = 0
    yield taken(gathered)


async def send_parts(reply: Reply, scope: Scope, send: Send) -> None:
    """Send a reply that has parts. Stops if the client is gone, and ends the connection of one that
    may not get the rest: what it has of the reply is no whole one then."""
    headers = [(b"content-type", reply.content_type.encode())]
    headers += [(name.encode(), value.encode()) for name, value in reply.headers.items()]
    parts = reply.parts
    if parts is None:
        raise RuntimeError("a reply without parts is sent whole")
    is_open = _extension(scope, "headgate.is_open", lambda: True)
    abort = _extension(scope, "headgate.abort", lambda: None)
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    async for part in parts:
        if is_open() and not _may_get_more(reply):
            abort()
        elif is_open():
            await send({"type": "http.response.body", "body": part, "more_body": True})
            continue
        if reply.discard is not None:
            await reply.discard()
        return
    await send({"type": "http.response.body", "body": b""})


def _may_get_more(reply: Reply) -> bool:
    try:
        reply.check()
    except RefusalError:
        return False
    return True


def _extension(scope: Scope, name: str, otherwise: Callable[[], Any]) -> Callable[[], Any]:
    found: Callable[[], Any] = scope.get("extensions", {}).get(name, {}).get("call", otherwise)
    return found
