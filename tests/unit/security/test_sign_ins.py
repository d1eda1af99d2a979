"""Who may end a sign-in, and how many there are."""

from __future__ import annotations

import random

import pytest

from headgate.base.units import NS_PER_S
from headgate.security.code_flow import SignInError
from headgate.security.sign_ins import (
    LIFETIME_S,
    SignIn,
    SignIns,
    UnansweredSignInError,
    is_secret,
)

ADDRESS = "192.0.2.1"
END_NS = LIFETIME_S * NS_PER_S


def begun(total: int = 10, per_address: int = 5) -> SignIns:
    return SignIns(random.Random(1).randbytes, total, per_address)


def answered(sign_ins: SignIns, browser: str, now_ns: int = 0) -> SignIn:
    """A sign-in whose code has come."""
    found = sign_ins.begin(browser, ADDRESS, now_ns)
    sign_ins.unanswered(found.state, browser, now_ns).code = "c"
    return found


def test_it_ends_once_in_its_browser() -> None:
    sign_ins = begun()
    browser = sign_ins.secret(None)
    one = answered(sign_ins, browser)
    assert sign_ins.end(one.state, browser, 1) is one
    assert len(sign_ins) == 0
    with pytest.raises(SignInError, match="has ended"):
        sign_ins.end(one.state, browser, 2)
    with pytest.raises(SignInError, match="has ended"):
        sign_ins.unanswered(one.state, browser, 2)


def test_all_its_values_are_random_and_differ() -> None:
    sign_ins = begun()
    browser = sign_ins.secret(None)
    two = [sign_ins.begin(browser, ADDRESS, 0) for _ in range(2)]
    texts = {browser, *(text for each in two for text in (each.state, each.nonce, each.verifier))}
    assert len(texts) == 7
    assert all(is_secret(text) for text in texts)
    shown = repr(two)
    assert not [text for text in texts if text in shown]


def test_another_browser_neither_answers_nor_ends_it() -> None:
    sign_ins = begun()
    browser, other = sign_ins.secret(None), sign_ins.secret(None)
    one = sign_ins.begin(browser, ADDRESS, 0)
    for wrong in (other, None, "", browser[:-1], browser + "A"):
        with pytest.raises(SignInError, match="another browser"):
            sign_ins.unanswered(one.state, wrong, 1)
        with pytest.raises(SignInError, match="another browser"):
            sign_ins.end(one.state, wrong, 1)
    # Nor does it disturb it.
    sign_ins.unanswered(one.state, browser, 2).code = "c"
    for wrong in (other, None):
        with pytest.raises(SignInError, match="another browser"):
            sign_ins.end(one.state, wrong, 3)
    assert sign_ins.end(one.state, browser, 4).code == "c"


def test_a_state_that_nobody_made() -> None:
    sign_ins = begun()
    browser = sign_ins.secret(None)
    sign_ins.begin(browser, ADDRESS, 0)
    for state in ("", "x", browser):
        with pytest.raises(SignInError, match="has ended"):
            sign_ins.unanswered(state, browser, 0)


def test_a_second_answer_is_refused() -> None:
    """A code that is replayed, or smuggled in behind the right one."""
    sign_ins = begun()
    browser = sign_ins.secret(None)
    one = answered(sign_ins, browser)
    with pytest.raises(SignInError, match="has ended"):
        sign_ins.unanswered(one.state, browser, 1)
    assert sign_ins.end(one.state, browser, 2).code == "c"
    refused = sign_ins.begin(browser, ADDRESS, 3)
    sign_ins.unanswered(refused.state, browser, 3).error = "refused"
    with pytest.raises(SignInError, match="has ended"):
        sign_ins.unanswered(refused.state, browser, 4)


def test_before_the_answer_it_does_not_end() -> None:
    sign_ins = begun()
    browser = sign_ins.secret(None)
    one = sign_ins.begin(browser, ADDRESS, 0)
    with pytest.raises(UnansweredSignInError):
        sign_ins.end(one.state, browser, 1)
    sign_ins.unanswered(one.state, browser, 2).code = "c"
    assert sign_ins.end(one.state, browser, 3) is one


def test_it_expires_also_after_its_answer() -> None:
    sign_ins = begun()
    browser = sign_ins.secret(None)
    one, two = answered(sign_ins, browser), sign_ins.begin(browser, ADDRESS, 1)
    with pytest.raises(SignInError, match="has ended"):
        sign_ins.end(one.state, browser, END_NS)
    assert sign_ins.unanswered(two.state, browser, END_NS) is two
    with pytest.raises(SignInError, match="has ended"):
        sign_ins.unanswered(two.state, browser, END_NS + 1)
    assert len(sign_ins) == 0


def test_a_browser_keeps_its_secret_and_two_tabs_sign_in() -> None:
    sign_ins = begun()
    browser = sign_ins.secret(None)
    assert sign_ins.secret(browser) == browser
    for odd in ("", "short", browser + "=", browser[:-1] + " ", "ä" * 43):
        assert sign_ins.secret(odd) not in (odd, browser)
    one, two = answered(sign_ins, browser), answered(sign_ins, browser)
    assert sign_ins.end(two.state, browser, 1) is two
    assert sign_ins.end(one.state, browser, 1) is one


def test_a_flood_is_bounded_per_address_and_in_all() -> None:
    sign_ins = begun(total=10, per_address=4)
    browser = sign_ins.secret(None)
    for at_ns in range(100):
        sign_ins.begin(browser, ADDRESS, at_ns)
    assert len(sign_ins) == 4
    # Of IPv6 a client has many addresses: their first 64 bits count.
    for number in range(100):
        sign_ins.begin(browser, f"2001:db8::{number}", 100)
    assert len(sign_ins) == 8
    for number in range(100):
        sign_ins.begin(browser, f"198.51.100.{number}", 100)
    assert len(sign_ins) == 10
    sign_ins.begin(browser, ADDRESS, END_NS + 101)
    assert len(sign_ins) == 1


def test_a_flood_of_one_address_ends_none_of_others() -> None:
    sign_ins = begun(total=10, per_address=8)
    reader, attacker = sign_ins.secret(None), sign_ins.secret(None)
    one = sign_ins.begin(reader, ADDRESS, 0)
    for number in range(100):
        sign_ins.begin(attacker, "203.0.113.1", number)
        sign_ins.begin(attacker, "203.0.113.2", number)
    # And another reader can begin at once.
    two = sign_ins.begin(reader, "192.0.2.2", 200)
    for number in range(100):
        sign_ins.begin(attacker, "203.0.113.1", 300 + number)
    assert len(sign_ins) == 10
    assert sign_ins.unanswered(one.state, reader, 500) is one
    assert sign_ins.unanswered(two.state, reader, 500) is two


def test_beyond_the_bound_of_an_address_the_newest_can_end() -> None:
    """An attacker behind the proxy of all readers locks nobody out by beginning sign-ins once."""
    sign_ins = begun(total=10, per_address=4)
    for number in range(50):
        sign_ins.begin(sign_ins.secret(None), ADDRESS, number)
    browser = sign_ins.secret(None)
    one = answered(sign_ins, browser, 50)
    assert sign_ins.end(one.state, browser, 51) is one


def test_an_answer_gives_the_browser_another_secret_for_all_its_sign_ins() -> None:
    sign_ins = begun()
    browser, other = sign_ins.secret(None), sign_ins.secret(None)
    one, two = answered(sign_ins, browser), sign_ins.begin(browser, ADDRESS, 0)
    theirs = answered(sign_ins, other)
    fresh = sign_ins.answered(one)
    assert is_secret(fresh)
    for state in (one.state, two.state):
        with pytest.raises(SignInError, match="another browser"):
            sign_ins.end(state, browser, 1)
    assert sign_ins.end(one.state, fresh, 1) is one
    assert sign_ins.unanswered(two.state, fresh, 1) is two
    assert sign_ins.end(theirs.state, other, 1) is theirs
