"""Finding a route, and reading what a request says."""

from __future__ import annotations

import pytest

from headgate.admin.operations import Operation
from headgate.admin.routing import EMPTY, Call, Reply, Route, RouteTable, as_json, as_text
from headgate.base.units import INT64_MAX
from headgate.metadata.errors import RefusalError
from tests.unit.admin.fake_facade import FakeFacade


async def _handler(call: Call) -> Reply:
    return as_json(dict(call.params))


def _route(method: str, path: str) -> Route:
    return Route(method, path, Operation.BROKER_READ, _handler, "")


TABLE = RouteTable(
    [
        _route("GET", "/a/{x}"),
        _route("GET", "/a/fixed"),
        _route("POST", "/a/{y}/z"),
        _route("GET", "/a/fixed/z"),
    ]
)


def _call(query: dict[str, str] | None = None, body: bytes = b"", **params: str) -> Call:
    facade = FakeFacade()
    return Call(facade, facade.clock, params, query or {}, body)


def test_a_fixed_segment_is_preferred() -> None:
    assert TABLE.find("GET", "/a/fixed")[0].path == "/a/fixed"
    assert TABLE.find("GET", "/a/other") == (TABLE.routes[0], {"x": "other"})


def test_a_parameter_is_tried_when_the_fixed_one_lacks_the_method() -> None:
    assert TABLE.find("POST", "/a/fixed/z") == (TABLE.routes[2], {"y": "fixed"})


def test_segments_are_decoded_after_splitting() -> None:
    assert TABLE.find("GET", "/a/b%2Fc%20d")[1] == {"x": "b/c d"}


def test_one_trailing_slash_is_ignored() -> None:
    assert TABLE.find("GET", "/a/fixed/")[0].path == "/a/fixed"


@pytest.mark.parametrize("path", ["", "/", "/a", "/a//", "/b/c", "/a/x/y", "/a/x/z/w"])
def test_other_paths_are_not_found(path: str) -> None:
    with pytest.raises(RefusalError) as caught:
        TABLE.find("GET", path)
    assert caught.value.status == 404


def test_other_methods_are_named() -> None:
    with pytest.raises(RefusalError) as caught:
        TABLE.find("PUT", "/a/fixed/z")
    assert caught.value.status == 405
    assert "GET, POST" in caught.value.reason


def test_the_methods_of_a_path_are_those_of_all_its_routes() -> None:
    assert TABLE.methods("/a/fixed/z/") == ["GET", "POST"]
    assert TABLE.methods("/a/other/z") == ["POST"]
    assert TABLE.methods("/b") == []


def test_flags() -> None:
    call = _call({"yes": "true", "loud": "TRUE", "no": "false", "odd": "1", "empty": ""})
    assert (call.flag("yes"), call.flag("loud")) == (True, True)
    assert (call.flag("no", default=True), call.flag("odd", default=True)) == (False, False)
    assert call.flag("empty", default=True)
    assert not call.flag("none")
    assert call.flag("none", default=True)


@pytest.mark.parametrize("text", ["abc", "", "1.5", "--1", str(INT64_MAX + 1), "9" * 50, "\u0661"])
def test_what_is_no_integer_is_not_found(text: str) -> None:
    with pytest.raises(RefusalError) as caught:
        _call(count=text).number("count")
    assert caught.value.status == 404


def test_integers() -> None:
    assert _call(count="-1").number("count") == -1
    assert _call(count=str(INT64_MAX)).number("count") == INT64_MAX


def test_integers_of_a_query() -> None:
    call = _call({"count": "-3", "empty": "", "odd": "1.5"})
    assert (call.query_number("count", 7), call.query_number("empty", 7)) == (-3, 7)
    assert call.query_number("none", 7) == 7
    with pytest.raises(RefusalError, match=r"odd is .1\.5.") as caught:
        call.query_number("odd", 7)
    assert caught.value.status == 404


@pytest.mark.parametrize("body", [b"", b'""', b"null", b"  "])
def test_empty_bodies(body: bytes) -> None:
    assert _call(body=body).decoded(int) is None


def test_replies() -> None:
    assert as_text("ok") == Reply(200, b"ok", "application/json")
    assert Reply(200, b"", "") == EMPTY
    assert _call().now_ms() == FakeFacade().clock.now_ms
