"""Answers that several clients get: made once, sent to all who ask for the same soon.

A hundred open pages ask for the same report every few seconds. A client says with the header
``Cache-Control: max-age=N`` (RFC 9111, 5.2.1.1) that an answer may be so old; without it, each
answer is made anew. An answer has a tag (``ETag``), and a client that knows it gets status 304. The
header ``Age`` says how old it is: clients that wait until it is as old as they accept come to ask
together, and share one that is new.

Only for reports that do not depend on who asks: a client's right to the route is checked before.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from headgate.base.units import KIB, NS_PER_S

ANSWER_BYTES_MAX: Final = 512 * KIB
"""A longer answer is kept for nobody."""

ANSWERS_MAX: Final = 8
"""Answers that are kept; the one that was made first makes room."""

_GZIP_LEVEL: Final = 1
_GZIP_FORMAT: Final = 31
"""The largest window of zlib, with gzip's head and end."""

AGE_S_MAX: Final = 60
"""No answer is kept for longer, whatever clients accept."""


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """An answer of which all clients get the same bytes."""

    body: bytes
    compressed: bytes
    """By gzip."""
    tag: str
    """With its quotes: it changes with the body alone."""
    made_ns: int


class SharedAnswers:
    """The latest answers of one broker, each under a name of the request."""

    def __init__(self) -> None:
        self._answers: dict[str, SharedAnswer] = {}
        self._making: dict[str, asyncio.Event] = {}

    async def get(
        self,
        name: str,
        age_s_max: int,
        now_ns: Callable[[], int],
        make: Callable[[], Awaitable[AsyncIterator[bytes]]],
    ) -> SharedAnswer | AsyncIterator[bytes]:
        """The answer of that name, made by ``make`` unless one is at most ``age_s_max`` old.

        Who asks while it is made waits for it. An answer that is too long to be kept comes as the
        parts that ``make`` gave, and so does the next.
        """
        age_ns_max = min(age_s_max, AGE_S_MAX) * NS_PER_S
        while True:
            found = self._answers.get(name)
            if found is not None and now_ns() - found.made_ns <= age_ns_max:
                return found
            making = self._making.get(name)
            if making is None:
                break
            await making.wait()
        self._making[name] = made = asyncio.Event()
        try:
            return await self._make(name, now_ns(), await make())
        finally:
            del self._making[name]
            made.set()

    async def _make(
        self, name: str, now_ns: int, parts: AsyncIterator[bytes]
    ) -> SharedAnswer | AsyncIterator[bytes]:
        gathered: list[bytes] = []
        size_bytes = 0
        compressor = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP_FORMAT)
        compressed: list[bytes] = []
        async for part in parts:
            gathered.append(part)
            size_bytes += len(part)
            if size_bytes > ANSWER_BYTES_MAX:
                self._answers.pop(name, None)
                return _chained(gathered, parts)
            # Part by part, since to compress all at once would hold the loop.
            compressed.append(compressor.compress(part))
        body = b"".join(gathered)
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        self._answers.pop(name, None)
        self._answers[name] = answer = SharedAnswer(
            body, b"".join([*compressed, compressor.flush()]), tag, now_ns
        )
        while len(self._answers) > ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]
        return answer


async def _chained(first: list[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for part in first:
        yield part
    async for part in rest:
        yield part


def accepted_age_s(headers: Mapping[str, str]) -> int | None:
    """How old an answer may be for a client; None if it wants one of its own."""
    for directive in headers.get("cache-control", "").split(","):
        name, _, value = directive.strip().partition("=")
        if name.lower() == "max-age" and value.isascii() and value.isdigit() and len(value) < 10:
            return int(value)
    return None
