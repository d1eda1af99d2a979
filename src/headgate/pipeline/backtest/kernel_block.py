"""Blocks of numbers that hold the state of the compiled replay for several points.

A block holds up to :data:`LANES` points, field by field, with the values of all lanes in each. The
compiler vectorizes a loop over the lanes that loads tuples, computes without a branch and stores
them. For that it must see that no lane touches another. So a block has one dimension, and its
strides are constants.
"""

from __future__ import annotations

from typing import Any, Final, get_type_hints

from numba import types
from numba.extending import intrinsic

WIDTH: Final = 8
"""Lanes in a group: as many numbers as the widest registers hold."""
LANES: Final = 4 * WIDTH
"""Lanes in a block. More would not fit into the fastest cache, and would wait for each other more
often."""

_TYPES: Final = {bool: types.boolean, int: types.intp, float: types.float64}


def field_types(tuple_class: Any) -> list[Any]:
    """The numba types of the fields of a named tuple of bool, int and float."""
    hints = get_type_hints(tuple_class)
    return [_TYPES[hints[name]] for name in tuple_class._fields]


def offsets(tuple_classes: tuple[Any, ...]) -> tuple[int, ...]:
    """The begin of each of these tuples in a block, and the length of the block."""
    found = [0]
    for each in tuple_classes:
        found.append(found[-1] + len(each._fields) * LANES)
    return tuple(found)


def _pointer(context: Any, builder: Any, array: Any, first: Any, lane: Any, number: int) -> Any:
    """The pointer to one field's value."""
    array_type, value = array
    data = context.make_array(array_type)(context, builder, value).data
    before = context.get_constant(types.intp, number * LANES)
    place = builder.add(builder.add(first, lane), before)
    return builder.gep(data, [place], inbounds=True)


@intrinsic
def load_lane(_: Any, tuple_class: Any, block: Any, first: Any, lane: Any) -> Any:
    """A tuple of this class from one lane; ``first`` is its begin in the block."""
    fields = field_types(tuple_class.instance_class)
    result = types.BaseTuple.from_types(fields, tuple_class.instance_class)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = signature.args[1], values[1]
        found = []
        for number, each in enumerate(fields):
            value = builder.load(_pointer(context, builder, array, values[2], values[3], number))
            if each is types.boolean:
                zero = context.get_constant(types.float64, 0.0)
                value = builder.fcmp_ordered("!=", value, zero)
            else:
                value = context.cast(builder, value, types.float64, each)
            found.append(value)
        return context.make_tuple(builder, result, found)

    return result(tuple_class, block, first, lane), generate


@intrinsic
def store_lane(_: Any, block: Any, first: Any, lane: Any, values: Any) -> Any:
    """Store a tuple into one lane."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array = signature.args[0], given[0]
        for number, each in enumerate(signature.args[3]):
            value = builder.extract_value(given[3], number)
            if each is types.boolean:
                # The compiler would turn a choice between 1 and 0 into a slower conversion.
                two, zero = (context.get_constant(types.float64, x) for x in (2.0, 0.0))
                value = builder.select(value, two, zero)
            else:
                value = context.cast(builder, value, each, types.float64)
            place = _pointer(context, builder, array, given[1], given[2], number)
            builder.store(value, place)
        return context.get_dummy_value()

    return types.void(block, first, lane, values), generate


@intrinsic
def where(typing: Any, condition: Any, value: Any, other: Any) -> Any:
    """``value if condition else other`` without a branch: both are computed, one is selected.

    For numbers, conditions, and tuples of them.
    """
    is_tuple = isinstance(value, types.BaseTuple)
    result = value if is_tuple else typing.unify_types(value, other)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        _, of_value, of_other = signature.args
        is_so, one, two = given
        if not is_tuple:
            one = context.cast(builder, one, of_value, result)
            two = context.cast(builder, two, of_other, result)
            return builder.select(is_so, one, two)
        chosen = []
        for number, (left, right) in enumerate(zip(of_value, of_other, strict=True)):
            extracted = context.cast(builder, builder.extract_value(two, number), right, left)
            chosen.append(builder.select(is_so, builder.extract_value(one, number), extracted))
        return context.make_tuple(builder, result, chosen)

    return result(condition, value, other), generate
