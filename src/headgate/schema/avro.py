"""Reads the JSON of an Avro schema into types whose names are resolved.

As Java's parser does for Pulsar: the defaults of fields are not checked, unknown attributes are
kept. Names are less strict, so that ``Outer$Inner`` of older clients passes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final, cast
from weakref import ReferenceType, ref

import msgspec

from headgate.base.errors import invariant
from headgate.base.work_units import SCHEMA_BYTES_PER_UNIT, SCHEMA_TYPE_READ
from headgate.schema.definition import Steps
from headgate.schema.errors import InvalidSchemaError

DEPTH_MAX: Final = 100
"""Types inside types."""

PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)
_RECORDS: Final = ("record", "error")
_ATTRIBUTES: Final = frozenset(
    ("type", "name", "namespace", "doc", "aliases", "fields", "symbols", "items", "values", "size")
)
_FIELD_ATTRIBUTES: Final = frozenset(("type", "name", "doc", "aliases", "default", "order"))
"""Attributes with a meaning of their own; all others are compared as they stand."""


def short_name(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition(".")[2]


@dataclass(slots=True, eq=False, weakref_slot=True)
class AvroType:
    """A type. Types that refer to each other by name are the same objects, as long as there is the
    :class:`AvroSchema` of them."""

    kind: str
    """The name of a primitive, or record, enum, fixed, array, map or union."""
    name: str = ""
    """The full name of a record, enum or fixed."""
    aliases: tuple[str, ...] = ()
    """Other full names that it reads."""
    fields: dict[str, AvroField] = field(default_factory=dict)
    """Of a record."""
    parts: list[Part] = field(default_factory=list)
    """The items of an array, the values of a map, the branches of a union."""
    size: int = 0
    """Bytes of a fixed."""

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return short_name(self.name)

    @property
    def inner(self) -> list[AvroType]:
        """The types of ``parts``."""
        return [_type_of(part) for part in self.parts]


Part = AvroType | ReferenceType[AvroType]
"""A type that is defined in its place, or a name. A name holds no object, so that a record that
contains itself is no cycle, which only a complete collection would free."""


def _type_of(part: Part) -> AvroType:
    if isinstance(part, AvroType):
        return part
    found = part()
    invariant(found is not None, "a type is used behind the end of its schema")
    return cast(AvroType, found)


@dataclass(slots=True, eq=False)
class AvroField:
    """A field of a record."""

    part: Part
    has_default: bool
    aliases: tuple[str, ...] = ()

    @property
    def type(self) -> AvroType:
        """Its type."""
        return _type_of(self.part)


_PRIMITIVE_TYPES: Final = {name: AvroType(name) for name in PRIMITIVES}


@dataclass(slots=True, eq=False)
class AvroSchema:
    """A whole schema."""

    root: AvroType
    named: dict[str, AvroType]
    """Its records, enums and fixed types by full name."""
    fingerprint: bytes
    """Equal for equal schemas: documentation, aliases and the writing of names do not count."""


def parse_avro(data: bytes) -> Steps[AvroSchema]:
    """Read an Avro schema.

    Raises:
        InvalidSchemaError: it is none.
    """
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidSchemaError(f"no JSON: {error}") from error
    yield 1 + len(data) // SCHEMA_BYTES_PER_UNIT
    parser = _Parser()
    root, form = yield from parser.parse(value, "", 0)
    try:
        text = json.dumps(form, sort_keys=True)
    except RecursionError as error:
        raise InvalidSchemaError("a default value is nested too deeply") from error
    yield 1 + len(data) // SCHEMA_BYTES_PER_UNIT
    return AvroSchema(_type_of(root), parser.named, hashlib.sha256(text.encode()).digest())


_Parsed = tuple[Part, Any]
"""A type, and a form of it in plain values that equals the form of an equal type."""


class _Parser:
    """Reads one schema."""

    def __init__(self) -> None:
        self.named: dict[str, AvroType] = {}

    def parse(self, value: Any, namespace: str, depth: int) -> Steps[_Parsed]:
        """Read a type inside ``namespace``."""
        yield SCHEMA_TYPE_READ
        if depth > DEPTH_MAX:
            raise InvalidSchemaError(f"more than {DEPTH_MAX} types inside each other")
        if isinstance(value, str):
            return self._known(value, namespace)
        if isinstance(value, list):
            return (yield from self._union(value, namespace, depth))
        if not isinstance(value, dict):
            raise InvalidSchemaError(f"{_shown(value)} is no type")
        kind = value.get("type")
        more = {key: item for key, item in value.items() if key not in _ATTRIBUTES}
        if isinstance(kind, dict | list):
            found, form = yield from self.parse(kind, namespace, depth + 1)
            return found, [form, more] if more else form
        if kind in _RECORDS:
            return (yield from self._record(value, more, namespace, depth))
        if kind in ("enum", "fixed"):
            return self._plain_named(kind, value, more, namespace)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in value:
                raise InvalidSchemaError(f"{kind} without {key}")
            inner, form = yield from self.parse(value[key], namespace, depth + 1)
            return AvroType(kind, parts=[inner]), [kind, form, more]
        if not isinstance(kind, str):
            raise InvalidSchemaError(f"No type: {_shown(value)}")
        found, form = self._known(kind, namespace)
        return found, [form, more] if more else form

    def _known(self, name: str, namespace: str) -> _Parsed:
        """A primitive, or a type that was defined before."""
        if name in _PRIMITIVE_TYPES:
            return _PRIMITIVE_TYPES[name], name
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self.named.get(full) or self.named.get(name)
        if found is None:
            raise InvalidSchemaError(f"Undefined name: {_shown(full)}")
        return ref(found), found.name

    def _union(self, value: list[Any], namespace: str, depth: int) -> Steps[_Parsed]:
        union, forms = AvroType("union"), ["union"]
        seen: set[str] = set()
        for each in value:
            part, form = yield from self.parse(each, namespace, depth + 1)
            branch = _type_of(part)
            key = branch.name or branch.kind
            if branch.kind == "union":
                raise InvalidSchemaError("Nested union")
            if key in seen:
                raise InvalidSchemaError(f"Duplicate in union: {_shown(key)}")
            seen.add(key)
            union.parts.append(part)
            forms.append(form)
        return union, forms

    def _named(self, kind: str, value: dict[str, Any], namespace: str) -> tuple[AvroType, str]:
        """A new named type, and the namespace of names inside it."""
        name = value.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidSchemaError(f"No name: {_shown(value)}")
        own = value.get("namespace", namespace)
        if not isinstance(own, str):
            raise InvalidSchemaError(f"The namespace of {_shown(name)} is no text")
        full = name if "." in name or not own else f"{own}.{name}"
        if full in self.named or full in PRIMITIVES:
            raise InvalidSchemaError(f"Can't redefine: {_shown(full)}")
        inside = full.rpartition(".")[0]
        aliases = _texts(value.get("aliases"), "aliases")
        full_aliases = (a if "." in a or not inside else f"{inside}.{a}" for a in aliases)
        made = self.named[full] = AvroType(kind, full, tuple(full_aliases))
        return made, inside

    def _plain_named(
        self, kind: str, value: dict[str, Any], more: dict[str, Any], namespace: str
    ) -> _Parsed:
        """An enum or fixed type."""
        made, _ = self._named(kind, value, namespace)
        if kind == "enum":
            symbols = _texts(value.get("symbols"), "symbols")
            if "symbols" not in value or len(set(symbols)) != len(symbols):
                raise InvalidSchemaError(f"Enum {_shown(made.name)} needs different symbols")
            more.pop("default", None)
            return made, [kind, made.name, list(symbols), more]
        size = value.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise InvalidSchemaError(f"Invalid or no size: {_shown(made.name)}")
        made.size = size
        return made, [kind, made.name, size, more]

    def _record(
        self, value: dict[str, Any], more: dict[str, Any], namespace: str, depth: int
    ) -> Steps[_Parsed]:
        made, inside = self._named("record", value, namespace)
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchemaError(f"Record {_shown(made.name)} has no fields")
        forms = []
        for each in fields:
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str) or "type" not in each:
                raise InvalidSchemaError(f"A field of {_shown(made.name)} has no name or no type")
            if name in made.fields:
                raise InvalidSchemaError(f"Duplicate field {_shown(name)} in {_shown(made.name)}")
            part, form = yield from self.parse(each["type"], inside, depth + 1)
            aliases = _texts(each.get("aliases"), "aliases")
            made.fields[name] = AvroField(part, "default" in each, aliases)
            kept = {key: item for key, item in each.items() if key not in _FIELD_ATTRIBUTES}
            default = [each["default"]] if "default" in each else []
            forms.append([name, form, default, each.get("order", "ascending"), kept])
        return made, ["record", made.name, forms, more]


def _texts(value: Any, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidSchemaError(f"{what} is no list of texts")
    return tuple(value)


def _shown(value: Any) -> str:
    """A value in the text of an error."""
    try:
        return repr(value)[:120]
    except RecursionError:  # it nests a little less than what cannot be decoded
        return f"a deeply nested {type(value).__name__}"
