"""The meanings of fields for the API's description: the texts under them in the source.

Python keeps no docstrings of attributes, so they are read from the source when a client first asks
for the description. A field without a text has a name that explains it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import ModuleType
from typing import Any

import msgspec


def add_meanings(
    types: Iterable[type[msgspec.Struct]], components: Mapping[str, dict[str, Any]]
) -> None:
    """Put the meanings of fields into ``components``, schemas by class name.

    A class is looked for in the modules of ``types``, and in the modules that these take classes of
    ``components`` from. Each module is read once.
    """
    modules = list(dict.fromkeys(inspect.getmodule(type_) for type_ in types))
    definitions = {module: _definitions(module) for module in modules}
    for module in modules:  # the loop appends to it
        for name, schema in components.items():
            found = getattr(module, name, None)
            if inspect.isclass(found) and issubclass(found, msgspec.Struct):
                own = inspect.getmodule(found)
                if own not in definitions:
                    modules.append(own)
                    definitions[own] = _definitions(own)
                _add(_meanings(found, definitions[own]), found, schema)


def _add(meanings: Mapping[str, str], type_: type[msgspec.Struct], schema: dict[str, Any]) -> None:
    for field, property_ in zip(
        type_.__struct_fields__, type_.__struct_encode_fields__, strict=True
    ):
        if field in meanings:
            schema["properties"][property_]["description"] = meanings[field]


def _meanings(
    type_: type[msgspec.Struct], definitions: Mapping[str, ast.ClassDef]
) -> dict[str, str]:
    """The texts under the fields of a class and of its base classes in the same module."""
    found: dict[str, str] = {}
    for each in reversed(type_.__mro__):
        if each.__module__ == type_.__module__ and each.__name__ in definitions:
            found |= _texts_under(definitions[each.__name__])
    return found


def _definitions(module: ModuleType | None) -> dict[str, ast.ClassDef]:
    """The classes of a module's source by name."""
    try:
        source = "" if module is None else inspect.getsource(module)
    except OSError:  # an installation without sources has no meanings
        return {}
    return {each.name: each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)}


def _texts_under(definition: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for field, text in pairwise(definition.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            texts[field.target.id] = inspect.cleandoc(str(text.value.value)).replace("``", "")
    return texts
