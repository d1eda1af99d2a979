"""Request bodies: what counts as empty, and what to say about one that cannot be read.

The texts follow Jackson's, which Pulsar answers with and scripts know; the Java class names in
them are left out. A bad body costs a second look by the standard library's parser, because its
errors have a position; a good one is read once, by msgspec.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import msgspec

from headgate.metadata.errors import RefusalError

BODY_BYTES_MAX = 1 << 20
"""Longest request body."""

_EMPTY = (b"", b'""', b"null")
_AT = " at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); "
_TOKENS = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
_WORD = re.compile(r"\w+")
_MISMATCH = re.compile(
    r"^Expected `(?P<want>[^`]+)`, got `(?P<got>[^`]+)`(?: - at `(?P<path>.+)`)?"
)
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
        raise RefusalError(400, _what_is_wrong(body, type_, str(error))) from error


@cache
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_, strict=False)


def _what_is_wrong(body: bytes, type_: Any, error: str) -> str:
    """The text for a body that could not be read; ``error`` is msgspec's."""
    try:
        value = json.loads(body.decode())
    except UnicodeDecodeError as bad_text:
        return f"Invalid UTF-8 at byte {bad_text.start}"
    except json.JSONDecodeError as malformed:
        return _jackson_text(body.decode(), malformed)
    except (ValueError, RecursionError) as other:
        return f"Malformed JSON: {other}"
    return _mismatch(value, type_, error)


def _jackson_text(text: str, error: json.JSONDecodeError) -> str:
    """Say the standard library's error in the words and with the columns of Jackson."""
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
    """Say which value of the body has the wrong type, and what is allowed there."""
    name = getattr(type_, "__name__", str(type_))
    if (beyond := _RANGE.match(error)) is not None:
        path = beyond["path"][1:].lstrip(".")
        java = _JAVA_RANGES[32 if "2147483647" in error or "2147483648" in error else 64]
        return (
            f"Numeric value ({_shown(value, path)}) out of range of {java}\n"
            f' (through reference chain: {name}["{path}"])'
        )
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
