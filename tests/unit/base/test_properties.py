"""The syntax of Java's property files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import InputError
from headgate.base.properties import parse_properties


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(found.key, found.value) for found in parse_properties(text, "broker.conf")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", [("a", "1")]),
        ("a = 1  ", [("a", "1")]),
        ("  a: 1", [("a", "1")]),
        ("a 1", [("a", "1")]),
        ("a\t=\t1", [("a", "1")]),
        ("a=", [("a", "")]),
        ("a", [("a", "")]),
        ("a=b=c", [("a", "b=c")]),
        ("# a=1\n! b=2\n\n c=3", [("c", "3")]),
        ("a=1\r\nb=2\rc=3\n", [("a", "1"), ("b", "2"), ("c", "3")]),
        ("a=1, \\\n   2", [("a", "1, 2")]),
        ("a=1\\\\\nb=2", [("a", "1\\"), ("b", "2")]),
        ("a=1\\", [("a", "1")]),
        ("# no \\\na=1", [("a", "1")]),
        ("a\\=b=c", [("a=b", "c")]),
        ("a\\\\=b", [("a\\", "b")]),
        ("a\\ b=c", [("a b", "c")]),
        ("a=\\u0041\\t\\n\\q\\\\", [("a", "A\t\nq\\")]),
        ("a=1\na=2", [("a", "1"), ("a", "2")]),
    ],
)
def test_syntax_of_java_properties(text: str, expected: list[tuple[str, str]]) -> None:
    assert _pairs(text) == expected


def test_assignments_know_their_line() -> None:
    found = parse_properties("# x\n\na=1\\\n2\nb=3\n", "broker.conf")
    assert [assignment.where for assignment in found] == ["broker.conf:3", "broker.conf:5"]


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    """Else a broker ignored its first setting, which may be that of authorization."""
    (found,) = parse_properties("\ufeffauthorizationEnabled=true\n", "broker.conf")
    assert (found.key, found.value) == ("authorizationEnabled", "true")


def test_a_broken_escape_is_named() -> None:
    with pytest.raises(InputError, match=r"broker\.conf:2: .u is not followed by four"):
        parse_properties("a=1\nb=\\u12", "broker.conf")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_properties(text, "broker.conf")
    except InputError:
        return
    assert all(isinstance(assignment.value, str) for assignment in found)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text("abc \\\t=#:", max_size=12)
    )
)
def test_what_is_escaped_is_read_back(values: dict[str, str]) -> None:
    def escape(text: str) -> str:
        return text.replace("\\", "\\\\").replace("\t", "\\t")

    text = "\n".join(f"{key}={escape(value)}" for key, value in values.items())
    assert dict(_pairs(text)) == {key: value.strip() for key, value in values.items()}
