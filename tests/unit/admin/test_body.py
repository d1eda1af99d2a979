"""What is said about bodies that cannot be read: the first line is Jackson's."""

from __future__ import annotations

import json
from typing import Any, Literal

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given
from msgspec import Struct

from headgate.admin.backlog_quotas import BacklogQuotaMap
from headgate.admin.body import decode, is_empty, last_of
from headgate.admin.namespaces import PoliciesBody
from headgate.metadata.errors import RefusalError
from headgate.metadata.policies import DispatchRate

FIELDS = [
    "rate", "names", "dispatchThrottlingRateInMsg", "bundles", "backlog_quota_map", "message_age",
    "policy", "limit",
]  # fmt: skip
"""That the types below have."""


class Nested(Struct):
    """Something in something."""

    rate: DispatchRate | None = None
    names: list[str] | None = None


class Painted(Struct):
    """Something of few colours."""

    colour: Literal["red", "green"] | None = None


def _refusal(body: bytes, type_: object) -> str:
    with pytest.raises(RefusalError) as caught:
        decode(body, type_)
    assert caught.value.status == 400
    return caught.value.reason


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{not json", "Unexpected character ('n' (code 110)): was expecting double-quote to "
                       "start field name"),
        (b"abc", "Unrecognized token 'abc': was expecting (JSON String, Number, Array, Object "
                 "or token 'null', 'true' or 'false')"),
        (b'{"a" 1}', "Unexpected character ('1' (code 49)): was expecting a colon to separate "
                     "field name and value"),
        (b"[1 2]", "Unexpected character ('2' (code 50)): was expecting comma to separate "
                   "entries"),
        (b"[1,", "Unexpected end-of-input"),
        (b"[&]", "Unexpected character ('&' (code 38)): was expecting a valid value"),
    ],
)  # fmt: skip
def test_malformed(body: bytes, text: str) -> None:
    assert _refusal(body, DispatchRate).partition("\n")[0] == text


def test_the_place_is_named() -> None:
    assert _refusal(b"{not json", DispatchRate).endswith("line: 1, column: 2]")
    assert _refusal(b"abc", int).endswith("line: 1, column: 4]")
    assert _refusal(b'{"a": "\xff"}', int) == "Invalid UTF-8 at byte 7"


@pytest.mark.parametrize(
    ("body", "type_", "text"),
    [
        (b"[]", DispatchRate, "Cannot deserialize value of type `DispatchRate` from Array value "
                              "(token `JsonToken.START_ARRAY`)"),
        (b'"x"', DispatchRate, "Cannot deserialize value of type `DispatchRate` from String value"),
        (b"{}", int, "Cannot deserialize value of type `int` from Object value (token "
                     "`JsonToken.START_OBJECT`)"),
        (b'{"dispatchThrottlingRateInMsg": "abc"}', DispatchRate,
         'Cannot deserialize value of type `int` from String "abc": not a valid `int` value\n '
         '(through reference chain: DispatchRate["dispatchThrottlingRateInMsg"])'),
        (b'{"rate": {"relativeToPublishRate": [1]}}', Nested,
         "Cannot deserialize value of type `boolean` from [1]: not a valid `boolean` value\n "
         '(through reference chain: Nested["rate.relativeToPublishRate"])'),
    ],
)  # fmt: skip
def test_wrong_types(body: bytes, type_: object, text: str) -> None:
    assert _refusal(body, type_) == text


def test_depths_without_end_are_malformed() -> None:
    """Inside a field that nobody asked for, where no type stops the reader."""
    body = b'{"a":' * 50_000
    assert _refusal(body, DispatchRate).startswith("Malformed JSON: ")


def test_a_number_out_of_range_is_named() -> None:
    reason = _refusal(b'{"dispatchThrottlingRateInMsg": 3000000000}', DispatchRate)
    assert "dispatchThrottlingRateInMsg" in reason
    assert "2147483647" in reason


def test_texts_that_hold_numbers_are_numbers() -> None:
    assert decode(b'{"dispatchThrottlingRateInMsg": "12"}', DispatchRate) == DispatchRate(12)


def _is_read_or_refused(body: bytes, type_: object) -> None:
    refusals = []
    try:
        decode(body, type_)
    except RefusalError as refusal:
        refusals.append((refusal.status, bool(refusal.reason)))
    assert refusals in ([], [(400, True)])


def test_a_wrong_type_before_a_syntax_error_is_a_syntax_error() -> None:
    reason = _refusal(b'{"dispatchThrottlingRateInMsg": "abc"', DispatchRate)
    assert reason.startswith("Unexpected end-of-input")
    assert "a value of another type" in _refusal(b'{"names": [1]}', Nested)


@pytest.mark.parametrize(
    ("body", "type_", "text"),
    [
        (b'{"destination_storage": {"policy": "x"}}', BacklogQuotaMap,
         'from String "x": not one of the values accepted for Enum class: '
         "[consumer_backlog_eviction, producer_exception, producer_request_hold]\n "
         '(through reference chain: dict["[...].policy"])'),
        (b'{"size": {}}', BacklogQuotaMap,
         'from String "size": not one of the values accepted for Enum class: '
         '[destination_storage, message_age]\n (through reference chain: dict[""])'),
        (b'[[{"colour": "blue"}]]', list[list[Painted]],
         'from String "blue": not one of the values accepted for Enum class: [green, red]\n '
         '(through reference chain: list["[0][0].colour"])'),
        (b'{"colour": ["red"]}', Painted,
         'from ["red"]: not one of the values accepted for Enum class: [green, red]\n '
         '(through reference chain: Painted["colour"])'),
    ],
)  # fmt: skip
def test_words_that_are_allowed_are_named(body: bytes, type_: object, text: str) -> None:
    assert _refusal(body, type_) == f"Cannot deserialize value of type `Enum` {text}"


@pytest.mark.parametrize(
    ("body", "path", "last"),
    [
        (b"{}", (), None),
        (b'{"x": 1}', (), None),
        (b'{"a": 1, "b": 2, "x": {"a": 1}}', (), "b"),
        (b'{"a": 1, "b": 2, "\\u0061": 3}', (), "a"),
        (b'{"x": {"a": 1}, "b": 2}', ("x",), "a"),
        (b'{"x": {"y": {"a": 1}}, "x": {"y": {"b": 1}}}', ("x", "y"), "b"),
        (b'{"x": [["a", 1]], "b": 2}', ("x",), None),
        (b'{"x": null}', ("x", "y"), None),
    ],
)
def test_the_last_of_some_keys(body: bytes, path: tuple[str, ...], last: str | None) -> None:
    assert last_of(body, ("a", "b"), *path) == last


def test_numbers_of_any_length_do_not_matter_to_keys() -> None:
    assert last_of(b'{"x": ' + b"9" * 5_000 + b', "a": 1}', ("a",)) == "a"


def test_depths_without_end_have_no_last_key() -> None:
    with pytest.raises(RefusalError) as caught:
        last_of(b'{"a":' * 50_000, ("a",))
    assert (caught.value.status, caught.value.reason[:16]) == (400, "Malformed JSON: ")


LISTS = b'"x":[' + b"[]," * 40_000 + b"1]"
QUOTA = b'{"a":1,"b":2}'


def test_long_bodies_are_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the standard library, for its errors and for the order of keys, a megabyte of empty lists
    took 0.1 s without a pause."""
    looked_at: list[int] = []
    loads = json.loads

    def counted(text: str, **how: Any) -> object:
        looked_at.append(len(text))
        return loads(text, **how)

    monkeypatch.setattr(json, "loads", counted)
    long = b"{" + LISTS + b',"q":{"y":' + QUOTA + b"}}"
    assert last_of(long, ("a", "b"), "q", "y") == "b"
    assert last_of(long, ("a", "b"), "q", "x") is None
    assert last_of(long, ("a", "b"), "x", "x") is None
    with pytest.raises(RefusalError, match="bytes: 65536 are allowed"):
        last_of(long, ("a", "b"))
    wrong = b"{" + LISTS + b',"dispatchThrottlingRateInMsg":"' + b"y" * 500 + b'"}'
    reason = _refusal(wrong, DispatchRate)
    assert reason.startswith("Cannot deserialize value of type `DispatchRate`: Expected `int`")
    assert _refusal(b"{" + LISTS, DispatchRate).startswith("Malformed JSON: ")
    assert len(_refusal(b'{"colour":"' + b"r" * 80_000 + b'"}', Painted)) < 400
    assert max(looked_at) == len(QUOTA)


def test_empty() -> None:
    assert is_empty(b' "" ')
    assert not is_empty(b'"x"')


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for type_ in (DispatchRate, PoliciesBody, Nested, int, int | DispatchRate):
        _is_read_or_refused(body, type_)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(FIELDS),
                inner,
            )
        ),
        max_leaves=8,
    )
)
def test_any_json_is_read_or_refused(value: object) -> None:
    body = msgspec.json.encode(value)
    for type_ in (DispatchRate, PoliciesBody, BacklogQuotaMap, Nested, int):
        _is_read_or_refused(body, type_)
