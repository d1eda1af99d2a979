"""Names of Java's classes, which Python looks up once in this lane.

Otherwise it asks Java at each use, 3,900 times in a refresh of all tables, and each time Java looks
for a class of that name in 250 jars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView


@contextmanager
def remembered_classes() -> Iterator[None]:
    """In the context, Python asks Java once for each package, class and static method by name."""
    with pytest.MonkeyPatch.context() as patch:
        for place in (JVMView, JavaPackage, JavaClass):
            patch.setattr(place, "__getattr__", _remembering(place.__getattr__))
        yield


def _remembering(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """A method ``__getattr__`` that looks up each name of an object once."""

    def found(self: Any, name: str) -> Any:
        value = look_up(self, name)
        if isinstance(value, (JavaClass, JavaMember, JavaPackage)):
            self.__dict__[name] = value
        return value

    return found
