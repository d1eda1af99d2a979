"""Encodes a large value as JSON in pieces, each of which takes little time.

The pieces joined are what ``msgspec.json.encode`` gives for the whole value. Small parts are
encoded whole; only what is large is taken apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import fields

WHOLE_MAX: Final = 64
"""Values (objects, items of lists and dictionaries) that are encoded without a pause."""

PAGE_CHARACTERS_MAX: Final = 16 * 1024
LONG_NAMES_WHOLE: Final = 16
"""Names of a page with more characters come in pieces of so many: 128 of the longest names have a
quarter of a megabyte."""

_SCALARS: Final = frozenset({str, int, float, bool, type(None), bytes})


class Encoded:
    """JSON that was encoded before: a part of a larger value."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.parts = tuple(parts)


def pieces_of(value: Any) -> Iterator[bytes]:
    """The JSON of ``value``, piece by piece."""
    if isinstance(value, Encoded):
        yield from value.parts
    elif isinstance(value, _Emptied | _Item):
        yield from value.pieces()
    elif _weight(value, WHOLE_MAX) <= WHOLE_MAX:
        yield msgspec.json.encode(value)
    elif isinstance(value, Struct):
        yield from object_pieces(struct_items(value))
    elif isinstance(value, Mapping):
        yield from object_pieces(value.items())
    else:
        yield from array_pieces(value)


def object_pieces(items: Iterable[tuple[str, Any]]) -> Iterator[bytes]:
    """The JSON of an object with these members, piece by piece."""
    before = b"{"
    for name, value in items:
        yield before + msgspec.json.encode(name) + b":"
        yield from pieces_of(value)
        before = b","
    yield b"{}" if before == b"{" else b"}"


def emptied_pieces(value: Any, names: frozenset[str]) -> Iterator[bytes]:
    """The JSON of ``value``, piece by piece. Its members of these ``names`` (those of the JSON) are
    empty afterwards, if they are lists or dictionaries, and so are those of their items. What they
    held is freed one by one, since to free very many items at once would hold the loop."""
    if not isinstance(value, Struct | Mapping) or _weight(value, WHOLE_MAX) <= WHOLE_MAX:
        yield from pieces_of(value)
    else:
        yield from object_pieces(
            (name, _Emptied(item, names) if name in names else item)
            for name, item in _members(value)
        )


def emptied_in_steps(value: Any, names: frozenset[str]) -> Iterator[None]:
    """Empty the same members without JSON; yields after each item."""
    for name, member in list(_members(value)):
        if name in names:
            for item in _taken_out(member):
                yield from emptied_in_steps(item, names)
                yield


class _Emptied:
    """A list or dictionary that is empty once it is encoded."""

    __slots__ = ("member", "names")

    def __init__(self, member: Any, names: frozenset[str]) -> None:
        self.member = member
        self.names = names

    def pieces(self) -> Iterator[bytes]:
        """Its JSON."""
        member, names = self.member, self.names
        if isinstance(member, dict):
            return object_pieces((name, _Item(member.pop(name), names)) for name in list(member))
        if isinstance(member, list):
            return array_pieces(_Item(item, names) for item in _taken_out(member))
        return pieces_of(member)


class _Item(NamedTuple):
    """An item of such a list or dictionary."""

    value: Any
    names: frozenset[str]

    def pieces(self) -> Iterator[bytes]:
        """Its JSON."""
        return emptied_pieces(self.value, self.names)


def _taken_out(member: Any) -> Iterator[Any]:
    """The items of a list or dictionary, which they leave one by one."""
    if isinstance(member, dict):
        for name in list(member):
            yield member.pop(name)
    elif isinstance(member, list):
        member.reverse()
        while member:
            yield member.pop()


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, Struct):
        return struct_items(value)
    return value.items() if isinstance(value, Mapping) else ()


def array_pieces(values: Iterable[Any]) -> Iterator[bytes]:
    """The JSON of an array with these items, piece by piece."""
    before = b"["
    for value in values:
        yield before
        yield from pieces_of(value)
        before = b","
    yield b"[]" if before == b"[" else b"]"


def names_pieces(pages: Iterable[list[str]]) -> Iterator[bytes]:
    """The JSON of one array of all texts in ``pages``; each page is a piece, unless it is long."""
    before = b"["
    for page in pages:
        if not page:
            yield b""
        is_long = sum(map(len, page)) > PAGE_CHARACTERS_MAX
        names_count = LONG_NAMES_WHOLE if is_long else len(page)
        for start in range(0, len(page), max(names_count, 1)):
            yield before + msgspec.json.encode(page[start : start + names_count])[1:-1]
            before = b","
    yield b"[]" if before == b"[" else b"]"


def struct_items(value: Struct) -> Iterator[tuple[str, Any]]:
    """The members of the JSON object of ``value``, in order."""
    for name, encode_name in _names(type(value)):
        member = getattr(value, name)
        if member is not UNSET:
            yield encode_name, member


@cache
def _names(kind: type[Struct]) -> tuple[tuple[str, str], ...]:
    """The fields of a kind, each with its name in JSON. msgspec reads the annotations anew each
    time, which takes longer than the JSON of the value."""
    return tuple((field.name, field.encode_name) for field in fields(kind))


_parts_by_kind: dict[type[Struct], tuple[str, ...]] = {}


def _parts(kind: type[Struct]) -> tuple[str, ...]:
    """Fields that may hold more than a scalar, by their annotation."""
    known = _parts_by_kind.get(kind)
    if known is None:
        known = _parts_by_kind[kind] = _find_parts(kind)
    return known


def _find_parts(kind: type[Struct]) -> tuple[str, ...]:
    scalars = ("str", "int", "float", "bool")
    return tuple(
        field.name
        for field in fields(kind)
        if not (field.type in _SCALARS or str(field.type).startswith(scalars))
    )


def _weight(value: Any, limit: int) -> int:
    """How many values there are in ``value``; stops a little above ``limit``."""
    kind = type(value)
    if kind in _SCALARS:
        return 1
    if kind is Encoded:
        return limit + 1
    if isinstance(value, Struct):
        inner: Iterable[Any] = (getattr(value, name) for name in _parts(kind))
    elif isinstance(value, Mapping):
        if len(value) > limit:
            return limit + 1
        inner = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        if len(value) > limit:
            return limit + 1
        inner = value
    else:
        return 1
    found = 1
    for each in inner:
        found += _weight(each, limit - found)
        if found > limit:
            break
    return found
