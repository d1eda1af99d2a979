"""Decoding of request bodies, with Jackson's words for a body that cannot be read.

The texts follow Jackson's, which Pulsar answers with and scripts know; the Java class names in
them are left out. A bad body is parsed a second time, by the standard library, whose errors have
a position, unless it is long; a good one is parsed once, by msgspec.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import cache
from typing import Any

import msgspec
import msgspec.inspect

from headgate.metadata.errors import RefusalError

BODY_BYTES_MAX = 1 << 20
"""Longest request body."""

REREAD_BYTES_MAX = 64 << 10
"""Longest text that the standard library parses: a megabyte of empty lists takes 0.1 s."""

MALFORMED = "Malformed JSON"

ERROR_CHARACTERS_MAX = 300
"""Of an error of msgspec, which may show what the client sent."""

_EMPTY = (b"", b'""', b"null")
_AT = " at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); "
_TOKENS = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
_WORD = re.compile(r"\w+")
_MISMATCH = re.compile(
    r"^Expected `(?P<want>[^`]+)`, got `(?P<got>[^`]+)`(?: - at `(?P<path>.+)`)?"
)
_NO_CHOICE = re.compile(
    r"^Invalid enum value '(?P<got>.*)' - at `(?P<key>key` in `)?(?P<path>.+)`", re.DOTALL
)
_STEP = re.compile(r"\[[^\]]*\]|[^.\[\]]+")
_RANGE = re.compile(r"^Expected `int` [<>]= -?\d+ - at `(?P<path>.+)`")
_JAVA_RANGES = {32: "int (-2147483648 - 2147483647)",
                64: "long (-9223372036854775808 - 9223372036854775807)"}  # fmt: skip
_JAVA = {"int": "int", "float": "double", "bool": "boolean", "str": "String"}


def is_empty(body: bytes) -> bool:
    """Whether a client sent no body; some send ``""`` or ``null`` for that."""
    return body.strip() in _EMPTY


def decode(body: bytes, type_: Any) -> Any:
    """Read ``body`` as ``type_``. Texts that hold a number are read as numbers, as Jackson does.

    Raises:
        RefusalError: 400 with what is wrong and where.
    """
    try:
        return _decoder(type_).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if len(body) <= REREAD_BYTES_MAX:
            raise RefusalError(400, _what_is_wrong(body, type_, str(error))) from error
        is_mismatch = isinstance(error, msgspec.ValidationError)
        what = f"Cannot deserialize value of type `{_name_of(type_)}`" if is_mismatch else MALFORMED
        raise RefusalError(400, f"{what}: {str(error)[:ERROR_CHARACTERS_MAX]}") from error


@cache
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_, strict=False)


def last_of(body: bytes, names: Collection[str], *path: str) -> str | None:
    """Which of ``names`` comes last in the object at ``path`` of a body that was decoded.

    Keys count in their order, also a key that occurs twice, as for Jackson, which assigns them one
    after the other. ``None`` if the object has none of them, or is not there.

    Raises:
        RefusalError: 400 for a body that the standard library cannot read.
    """
    raw = body
    try:
        for step in path:
            members = _members.decode(raw)
            if step not in members:
                return None
            raw = bytes(members[step])
        if len(raw) > REREAD_BYTES_MAX:
            what = f"an object has {len(raw)} bytes: {REREAD_BYTES_MAX} are allowed"
            raise RefusalError(400, f"{MALFORMED}: {what}")
        found = json.loads(raw.decode(), object_pairs_hook=tuple, parse_int=str, parse_float=str)
    except msgspec.ValidationError:
        return None  # no object is there
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RefusalError(400, f"{MALFORMED}: {error}") from error
    if not isinstance(found, tuple):
        return None
    return next((key for key, _ in reversed(found) if key in names), None)


_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _what_is_wrong(body: bytes, type_: Any, error: str) -> str:
    """The text for a body that could not be read; ``error`` is msgspec's."""
    try:
        value = json.loads(body.decode())
    except UnicodeDecodeError as bad_text:
        return f"Invalid UTF-8 at byte {bad_text.start}"
    except json.JSONDecodeError as malformed:
        return _jackson_text(body.decode(), malformed)
    except (ValueError, RecursionError) as other:
        return f"{MALFORMED}: {other}"
    return _mismatch(value, type_, error)


def _name_of(type_: Any) -> str:
    return getattr(type_, "__name__", str(type_))


def _jackson_text(text: str, error: json.JSONDecodeError) -> str:
    """The standard library's error in the words and columns of Jackson."""
    word = _WORD.match(text, error.pos)
    column = error.colno
    if error.pos >= len(text):
        what = "Unexpected end-of-input"
    elif error.msg.startswith("Expecting value") and word is not None:
        what = f"Unrecognized token '{word.group()[:80]}': was expecting {_TOKENS}"
        column += len(word.group())
    else:
        found = text[error.pos]
        wanted = "a valid value"
        if error.msg.startswith("Expecting property name"):
            wanted = "double-quote to start field name"
        elif error.msg.startswith("Expecting ',' delimiter"):
            wanted = "comma to separate entries"
        elif error.msg.startswith("Expecting ':' delimiter"):
            wanted = "a colon to separate field name and value"
        what = f"Unexpected character ('{found}' (code {ord(found)})): was expecting {wanted}"
    return f"{what}\n{_AT}line: {error.lineno}, column: {column}]"


def _mismatch(value: Any, type_: Any, error: str) -> str:
    """The text for a value of the wrong type, with what is allowed there."""
    name = _name_of(type_)
    if (beyond := _RANGE.match(error)) is not None:
        path = beyond["path"][1:].lstrip(".")
        java = _JAVA_RANGES[32 if "2147483647" in error or "2147483648" in error else 64]
        return (
            f"Numeric value ({_shown(value, path)}) out of range of {java}\n"
            f' (through reference chain: {name}["{path}"])'
        )
    if (unknown := _NO_CHOICE.match(error)) is not None:
        path = unknown["path"][1:].lstrip(".")
        allowed = _choices(type_, path, of_key=unknown["key"] is not None)
        return _not_one_of(allowed, f'String "{unknown["got"][:80]}"', f'{name}["{path}"]')
    match = _MISMATCH.match(error)
    if match is None:
        return f"Cannot deserialize value of type `{name}`: {error}"
    path = (match["path"] or "$")[1:].lstrip(".")
    if not path:
        token = {"array": "Array", "object": "Object", "str": "String"}.get(match["got"])
        shown = f"{token or match['got']} value"
        if token in ("Array", "Object"):
            shown += f" (token `JsonToken.START_{token.upper()}`)"
        return f"Cannot deserialize value of type `{name}` from {shown}"
    if allowed := _choices(type_, path):
        return _not_one_of(allowed, _shown(value, path), f'{name}["{path}"]')
    want = _JAVA.get(match["want"], match["want"])
    return (
        f"Cannot deserialize value of type `{want}` from {_shown(value, path)}: "
        f'not a valid `{want}` value\n (through reference chain: {name}["{path}"])'
    )


def _shown(value: Any, path: str) -> str:
    """The value at ``path``, shortened, as Jackson writes it."""
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return "a value of another type"
        value = value[key]
    if isinstance(value, str):
        return f'String "{value[:80]}"'
    return json.dumps(value)[:80]


def _not_one_of(allowed: tuple[str, ...], shown: str, where: str) -> str:
    return (
        f"Cannot deserialize value of type `Enum` from {shown}: not one of the values accepted "
        f"for Enum class: [{', '.join(allowed)}]\n (through reference chain: {where})"
    )


def _choices(type_: Any, path: str, *, of_key: bool = False) -> tuple[str, ...]:
    """The texts allowed at ``path``, or as a key there; empty if other values are allowed."""
    node = _without_null(msgspec.inspect.type_info(type_))
    for step in _STEP.findall(path):
        node = _without_null(_inner(node, step))
    if of_key and isinstance(node, msgspec.inspect.DictType):
        node = _without_null(node.key_type)
    if isinstance(node, msgspec.inspect.LiteralType):
        return tuple(str(each) for each in node.values)
    return ()


def _inner(node: msgspec.inspect.Type, step: str) -> msgspec.inspect.Type:
    """The type of a field, or of the values in a map or a list."""
    if isinstance(node, msgspec.inspect.StructType):
        return next(field.type for field in node.fields if field.encode_name == step)
    if isinstance(node, msgspec.inspect.DictType):
        return node.value_type
    if isinstance(node, msgspec.inspect.CollectionType):
        return node.item_type
    return msgspec.inspect.AnyType()


def _without_null(node: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """The type without ``null``."""
    if isinstance(node, msgspec.inspect.UnionType):
        others = [each for each in node.types if not isinstance(each, msgspec.inspect.NoneType)]
        return others[0] if len(others) == 1 else node
    return node
