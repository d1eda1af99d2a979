"""The meanings of fields for the API's description: the texts under them in the source.

Python keeps no docstrings of attributes, so they are read from the source when a client first asks
for the description. A field without a text has a name that explains it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec


def add_meanings(type_: type[msgspec.Struct], components: Mapping[str, dict[str, Any]]) -> None:
    """Put the meanings of fields into ``components``, schemas by class name.

    A class is looked for in the module of ``type_``, and in the modules that this one takes classes
    of ``components`` from.
    """
    modules = [inspect.getmodule(type_)]
    for module in modules:  # the loop appends to it
        for name, schema in components.items():
            found = getattr(module, name, None)
            if inspect.isclass(found) and issubclass(found, msgspec.Struct):
                _add(_meanings(found), found, schema)
                if (own := inspect.getmodule(found)) not in modules:
                    modules.append(own)


def _add(meanings: Mapping[str, str], type_: type[msgspec.Struct], schema: dict[str, Any]) -> None:
    for field, property_ in zip(
        type_.__struct_fields__, type_.__struct_encode_fields__, strict=True
    ):
        if field in meanings:
            schema["properties"][property_]["description"] = meanings[field]


def _meanings(type_: type[msgspec.Struct]) -> dict[str, str]:
    """The texts under the fields of a class and of its base classes."""
    found: dict[str, str] = {}
    for each in reversed(type_.__mro__):
        if each.__module__ == type_.__module__:
            for definition in ast.parse(_source(each)).body:
                if isinstance(definition, ast.ClassDef):
                    found |= _texts_under(definition)
    return found


def _source(type_: type) -> str:
    try:
        return inspect.getsource(type_)
    except OSError:  # an installation without sources has no meanings
        return ""


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
