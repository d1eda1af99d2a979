"""Answers as ``pulsar-admin`` prints them.

Objects are JSON as Jackson indents it, lists have one item a line, maps one ``key    value``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

_INDENT: Final = "  "
_HEX_LINE_BYTES: Final = 16


def as_json(value: Any) -> str:
    """Any JSON value; text stands bare, and what is not set reads ``null``."""
    return value if isinstance(value, str) else _pretty(value, 0)


def as_lines(value: Any) -> str:
    """One item of a list a line. Anything else as JSON."""
    if not isinstance(value, list):
        return as_json(value)
    return "\n".join(as_json(item) for item in value)


def as_map(value: Any) -> str:
    """One key of a map a line, with its value; a list as Java writes it. Anything else as JSON."""
    if not isinstance(value, dict):
        return as_json(value)
    return "\n".join(f"{key}    {_java_text(item)}" for key, item in value.items())


def java_object(name: str, fields: Mapping[str, Any]) -> str:
    """An object as Java writes it: ``Name(field=value, ...)``."""
    return f"{name}({', '.join(f'{key}={_java_text(item)}' for key, item in fields.items())})"


def hex_dump(data: bytes) -> str:
    """Bytes in rows of 16, with their printable ASCII beside them, as Netty draws them."""
    rule = "+--------+" + "-" * 49 + "+" + "-" * _HEX_LINE_BYTES + "+"
    lines = [
        " " * 9 + "+" + "-" * 49 + "+",
        " " * 9 + "|" + "".join(f" {column:2x}" for column in range(_HEX_LINE_BYTES)) + " |",
        rule,
    ]
    for begin in range(0, len(data), _HEX_LINE_BYTES):
        row = data[begin : begin + _HEX_LINE_BYTES]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"|{begin:08x}| {row.hex(' '):<47} |{shown:<{_HEX_LINE_BYTES}}|")
    return "\n".join([*lines, rule])


def _pretty(value: Any, depth: int) -> str:
    """JSON as Jackson's default printer indents it: arrays stay on their line."""
    if isinstance(value, dict):
        if not value:
            return "{ }"
        outer, inner = _INDENT * depth, _INDENT * (depth + 1)
        fields = (
            f"{inner}{json.dumps(key, ensure_ascii=False)} : {_pretty(item, depth + 1)}"
            for key, item in value.items()
        )
        return "{\n" + ",\n".join(fields) + f"\n{outer}}}"
    if isinstance(value, list):
        if not value:
            return "[ ]"
        return "[ " + ", ".join(_pretty(item, depth) for item in value) + " ]"
    return json.dumps(value, ensure_ascii=False)


def _java_text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_java_text(item) for item in value) + "]"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
