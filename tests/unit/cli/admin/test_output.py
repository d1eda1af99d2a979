"""Answers in the forms in which ``pulsar-admin`` prints them."""

from __future__ import annotations

import json

from headgate.cli.admin.output import as_json, as_lines, as_map, hex_dump, java_object


def test_objects_are_indented_as_jackson_does() -> None:
    value = {"a": 1, "b": {"c": [1, {"d": True}], "é": None}, "e": {}, "f": [], "g": 0.0}
    text = as_json(value)
    assert text.splitlines() == [
        "{",
        '  "a" : 1,',
        '  "b" : {',
        '    "c" : [ 1, {',
        '      "d" : true',
        "    } ],",
        '    "é" : null',
        "  },",
        '  "e" : { },',
        '  "f" : [ ],',
        '  "g" : 0.0',
        "}",
    ]
    assert json.loads(text) == value


def test_texts_stand_bare_and_nothing_is_null() -> None:
    assert as_json("ok") == "ok"
    assert as_json(None) == "null"
    assert as_json(True) == "true"
    assert as_json(["a"]) == '[ "a" ]'


def test_lists_and_maps_are_lines() -> None:
    assert as_lines(["a", "b c"]) == "a\nb c"
    assert as_lines([]) == ""
    assert as_lines({"a": 1}) == '{\n  "a" : 1\n}'
    assert as_map({"a": "1", "b": ["x", "y"], "c": 2}) == "a    1\nb    [x, y]\nc    2"
    assert as_map({}) == ""
    assert as_map(None) == "null"


def test_objects_are_written_as_java_does() -> None:
    assert (
        java_object("A", {"b": 1, "c": "d", "e": None, "f": ["g"]}) == "A(b=1, c=d, e=null, f=[g])"
    )
    assert java_object("A", {}) == "A()"


def test_bytes_are_drawn_as_netty_does() -> None:
    assert hex_dump(b"hello\n" + bytes(range(0x41, 0x4C)) + b"\xff").splitlines() == [
        "         +-------------------------------------------------+",
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |",
        "+--------+-------------------------------------------------+----------------+",
        "|00000000| 68 65 6c 6c 6f 0a 41 42 43 44 45 46 47 48 49 4a |hello.ABCDEFGHIJ|",
        "|00000010| 4b ff                                           |K.              |",
        "+--------+-------------------------------------------------+----------------+",
    ]
