"""Claims, at each boundary. How verifiers use them is in test_tokens.py and test_openid.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.security.claims import (
    check_audience,
    check_issued,
    check_present,
    check_times,
    role_of,
    token_id_of,
)
from headgate.security.errors import CredentialsError

NOW_S = 1_800_000_000


@given(st.integers(-100, 100), st.integers(0, 50))
def test_a_token_lapses_at_its_expiry_and_leeway(offset_s: int, leeway_s: int) -> None:
    claims = {"exp": NOW_S + offset_s}
    if offset_s + leeway_s > 0:
        assert check_times(claims, NOW_S, leeway_s) == NOW_S + offset_s + leeway_s
    else:
        with pytest.raises(CredentialsError, match="expired"):
            check_times(claims, NOW_S, leeway_s)


@given(st.integers(-100, 100), st.integers(0, 50))
def test_a_token_begins_the_leeway_before_its_time(offset_s: int, leeway_s: int) -> None:
    for claims, check in (
        ({"nbf": NOW_S + offset_s}, check_times),
        ({"iat": NOW_S + offset_s}, check_issued),
    ):
        if offset_s <= leeway_s:
            assert check(claims, NOW_S, leeway_s) is None
        else:
            with pytest.raises(CredentialsError, match=f"in {offset_s} s only"):
                check(claims, NOW_S, leeway_s)


def test_a_token_without_times_never_lapses() -> None:
    assert check_times({}, NOW_S, 0) is None
    check_issued({}, NOW_S, 0)


@pytest.mark.parametrize("value", ["1", None, True, [1], -1, 1e300, float("inf"), float("nan")])
def test_what_is_no_instant(value: object) -> None:
    for name in ("exp", "nbf"):
        with pytest.raises(CredentialsError, match=f"claim {name} of the token is no instant"):
            check_times({name: value}, NOW_S, 0)
    with pytest.raises(CredentialsError, match="claim iat of the token is no instant"):
        check_issued({"iat": value}, NOW_S, 0)


def test_claims_that_must_be_there() -> None:
    check_present({"exp": 1, "sub": ""}, ("exp", "sub"))
    for claims in ({"exp": 1}, {"exp": 1, "sub": None}):
        with pytest.raises(CredentialsError, match="no claim sub"):
            check_present(claims, ("exp", "sub"))


@pytest.mark.parametrize("value", ["b", ["b"], ["x", "a"]])
def test_one_of_several_audiences(value: object) -> None:
    check_audience({"aud": value}, "aud", ("a", "b"))


@pytest.mark.parametrize("value", ["c", ["c"], [], None, 7, {"a": 1}, "a b", [["a"]], ""])
def test_another_audience(value: object) -> None:
    with pytest.raises(CredentialsError, match="does not have 'a' or 'b'"):
        check_audience({"aud": value}, "aud", ("a", "b"))


def test_the_role_is_a_text_or_the_first_of_a_list() -> None:
    assert role_of({"sub": "app"}, "sub") == "app"
    assert role_of({"groups": ["first", "second"]}, "groups") == "first"
    for value in (None, "", " ", [], [""], [["app"]], 7, {"app": 1}, "x" * 1_001):
        with pytest.raises(CredentialsError, match="claim sub of the token has no role"):
            role_of({"sub": value}, "sub")


def test_the_id_of_a_token() -> None:
    assert token_id_of({"jti": "t1"}) == "t1"
    assert token_id_of({"jti": 7}) == "7"
    assert token_id_of({}) == token_id_of({"jti": True}) == token_id_of({"jti": ["t1"]}) == ""
