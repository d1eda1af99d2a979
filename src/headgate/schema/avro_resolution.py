"""Whether a reader's Avro schema reads the data of a writer's: the law of schema resolution.

The answers are those of Avro's Java library, which Pulsar asks. In it the names of records do not
count outside unions, and an enum may lose symbols. A record that has no namesake in the reader's
union takes the first branch of the same structure.
"""

from __future__ import annotations

from typing import Final

from headgate.base.work_units import SCHEMA_FIELDS_PER_UNIT, SCHEMA_PAIR_COMPARED
from headgate.schema.avro import AvroField, AvroSchema, AvroType, short_name
from headgate.schema.definition import Steps
from headgate.schema.errors import InvalidSchemaError

COST_MAX: Final = 400_000
"""Pairs of types and fields that one comparison may look at: half a second. Definitions of people
take a few thousand."""

CHAIN_MAX: Final = 64
"""Unions inside records inside unions that are looked at to choose a branch."""

PATH_CHARACTERS_MAX: Final = 200
_NAMED: Final = ("record", "enum", "fixed")

_PROMOTED: Final[dict[str, tuple[str, ...]]] = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""The primitives that each one reads beside itself."""


def misfit(reader: AvroSchema, writer: AvroSchema) -> Steps[str]:
    """Why ``reader`` does not read data that ``writer`` wrote; empty if it does.

    Raises:
        InvalidSchemaError: the schemas are too complex to compare.
    """
    return (yield from _Resolution(reader).run(reader.root, writer.root))


class _Resolution:
    """One comparison."""

    def __init__(self, reader: AvroSchema) -> None:
        types = reader.named.values()
        self._names = {alias: each.name for each in types for alias in each.aliases}
        """Names of the writer that the reader calls otherwise."""
        self._field_names = {
            each.name: {
                alias: name
                for name, f in each.fields.items()
                for alias in f.aliases
                if alias not in each.fields
            }
            for each in types
            if any(one.aliases for one in each.fields.values())
        }
        self._fields: dict[int, dict[str, AvroField]] = {}
        self._branches: dict[tuple[int, int], AvroType | None] = {}
        self._equivalent: dict[tuple[int, int], bool] = {}
        self._unlike: dict[tuple[int, int], bool] = {}
        self._cost = 0
        self._depth = 0

    def run(self, reader: AvroType, writer: AvroType) -> Steps[str]:
        """Compare two types and all inside them."""
        seen: set[tuple[int, int]] = set()
        todo = [(reader, writer, "")]
        while todo:
            reader, writer, path = todo.pop()
            pair = (id(reader), id(writer))
            if pair in seen:
                continue
            seen.add(pair)
            yield self._charge(1)
            why = yield from self._misfit(reader, writer)
            if why:
                return f"{path.lstrip('.')}: {why}" if path else why
            todo += yield from self._parts(reader, writer, path[-PATH_CHARACTERS_MAX:])
        return ""

    def _charge(self, cost: int) -> int:
        """Count the cost of a step; returns its work units."""
        self._cost += cost
        if self._cost > COST_MAX:
            raise InvalidSchemaError("The definitions are too complex to be compared")
        return SCHEMA_PAIR_COMPARED + cost // SCHEMA_FIELDS_PER_UNIT

    def _misfit(self, reader: AvroType, writer: AvroType) -> Steps[str]:
        """Why the types do not fit, whatever is inside them; empty if they fit."""
        if writer.kind == "union":
            return ""  # each branch is compared alone
        if reader.kind == "union":
            branch = yield from self._branch(reader, writer)
            what = writer.name or writer.kind
            return "" if branch is not None else f"no branch of the reader's union takes {what}"
        if reader.kind != writer.kind:
            if writer.kind in _PROMOTED.get(reader.kind, ()):
                return ""
            return f"{writer.kind} cannot be read as {reader.kind}"
        if reader.kind == "record":
            yield self._charge(len(reader.fields))
            theirs = self._writer_fields(writer)
            for name, field in reader.fields.items():
                if not field.has_default and name not in theirs:
                    return f"field {name!r} of the reader has no default, and the writer lacks it"
        elif reader.kind in _NAMED:
            # Namespaces count in unions alone.
            if short_name(self._name(writer)) != reader.short_name:
                return f"{writer.kind} {writer.name} cannot be read as {reader.name}"
            if reader.size != writer.size:
                return f"{writer.size} bytes of {writer.name} cannot be read as {reader.size}"
        return ""

    def _parts(
        self, reader: AvroType, writer: AvroType, path: str
    ) -> Steps[list[tuple[AvroType, AvroType, str]]]:
        """The pairs inside a pair that fits."""
        if writer.kind == "union":
            yield self._charge(len(writer.parts))
            if (yield from self._is_equivalent(reader, writer, 0)):
                pairs = zip(reader.inner, writer.inner, strict=True)
                return [(ours, other, path) for ours, other in pairs]
            return [(reader, branch, path) for branch in writer.inner]
        if reader.kind == "union":
            chosen = yield from self._branch(reader, writer)
            return [] if chosen is None else [(chosen, writer, path)]
        if reader.kind == "record":
            yield self._charge(len(reader.fields))
            theirs = self._writer_fields(writer)
            return [
                (field.type, theirs[name].type, f"{path}.{name[:PATH_CHARACTERS_MAX]}")
                for name, field in reader.fields.items()
                if name in theirs
            ]
        return [(ours, other, path) for ours, other in zip(reader.inner, writer.inner, strict=True)]

    def _is_equivalent(self, reader: AvroType, writer: AvroType, depth: int) -> Steps[bool]:
        """Whether two types have the same structure and the same names without namespaces. Two such
        unions are compared branch by branch."""
        if reader.kind != writer.kind or depth > CHAIN_MAX:
            return False
        if reader.kind in _NAMED and reader.short_name != writer.short_name:
            return False
        pair = (id(reader), id(writer))
        if pair in self._equivalent:
            return self._equivalent[pair]
        if list(reader.fields) != list(writer.fields) or len(reader.parts) != len(writer.parts):
            return False
        yield self._charge(1 + len(reader.fields) + len(reader.parts))
        self._equivalent[pair] = True  # while it is being found out
        ours = [*(field.type for field in reader.fields.values()), *reader.inner]
        theirs = [*(field.type for field in writer.fields.values()), *writer.inner]
        for one, other in zip(ours, theirs, strict=True):
            if not (yield from self._is_equivalent(one, other, depth + 1)):
                self._equivalent[pair] = False
                break
        return self._equivalent[pair]

    def _branch(self, reader: AvroType, writer: AvroType) -> Steps[AvroType | None]:
        """The branch of the reader's union that reads the writer's type."""
        pair = (id(reader), id(writer))
        if pair not in self._branches:
            self._branches[pair] = yield from self._chosen_branch(reader, writer)
        return self._branches[pair]

    def _chosen_branch(self, reader: AvroType, writer: AvroType) -> Steps[AvroType | None]:
        yield self._charge(len(reader.parts))
        similar: AvroType | None = None
        for branch in reader.inner:
            if branch.kind != writer.kind:
                continue
            if branch.kind not in _NAMED or branch.name == self._name(writer):
                return branch
            if branch.kind != "record" or (yield from self._is_unlike(branch, writer)):
                continue
            if similar is None or branch.short_name == writer.short_name:
                similar = branch
        if similar is not None:
            return similar
        return next((b for b in reader.inner if writer.kind in _PROMOTED.get(b.kind, ())), None)

    def _is_unlike(self, reader: AvroType, writer: AvroType) -> Steps[bool]:
        """Whether a record, or a field of it, does not fit; what is inside fields is not asked."""
        pair = (id(reader), id(writer))
        if pair in self._unlike or self._depth >= CHAIN_MAX:
            return self._unlike.get(pair, False)
        self._unlike[pair] = False  # while it is being found out: a record that contains itself
        self._depth += 1
        found = bool((yield from self._misfit(reader, writer)))
        if not found:
            theirs = self._writer_fields(writer)
            for name, field in reader.fields.items():
                other = theirs.get(name)
                if other is None:
                    continue
                yield self._charge(1)
                if (yield from self._misfit(field.type, other.type)):
                    found = True
                    break
        self._depth -= 1
        self._unlike[pair] = found
        return found

    def _name(self, writer: AvroType) -> str:
        """The writer's name of a type as the reader calls it."""
        return self._names.get(writer.name, writer.name)

    def _writer_fields(self, writer: AvroType) -> dict[str, AvroField]:
        """The fields of a writer's record by the reader's names."""
        renamed = self._field_names.get(self._name(writer))
        if not renamed:
            return writer.fields
        found = self._fields.get(id(writer))
        if found is None:
            found = {renamed.get(name, name): field for name, field in writer.fields.items()}
            self._fields[id(writer)] = found
        return found
