"""The law of the key cache: by examples in time, and by any order of fetches and questions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.security.key_cache import FAILURE_PAUSE_NS, Answer, CachedKeys, CacheTimes
from headgate.security.token_keys import TokenKey

S = NS_PER_S
TIMES = CacheTimes(refresh_after_ns=100 * S, expire_after_ns=200 * S, miss_refresh_ns=30 * S)
KEY = TokenKey(b"", ("RS256",))


def cache_at_zero(*names: str) -> CachedKeys:
    cache = CachedKeys(TIMES)
    cache.fetched(dict.fromkeys(names, (KEY,)), 0, 0)
    return cache


def test_an_empty_cache_has_to_be_filled() -> None:
    cache = CachedKeys(TIMES)
    assert cache.answer("a", 0) is Answer.FETCH
    assert cache.keys("a", 0) == ()


def test_a_key_serves_until_the_cache_expires() -> None:
    cache = cache_at_zero("a")
    assert cache.answer("a", 100 * S - 1) is Answer.USE
    assert cache.answer("a", 100 * S) is Answer.USE_AND_FETCH
    assert cache.answer("a", 200 * S - 1) is Answer.USE_AND_FETCH
    assert cache.keys("a", 200 * S - 1) == (KEY,)
    assert cache.answer("a", 200 * S) is Answer.FETCH
    assert cache.keys("a", 200 * S) == ()


def test_an_unknown_key_is_looked_for_after_a_while() -> None:
    cache = cache_at_zero("a")
    assert cache.answer("b", 30 * S - 1) is Answer.UNKNOWN
    assert cache.answer("b", 30 * S) is Answer.FETCH
    cache.fetched({"a": (KEY,)}, 30 * S, 31 * S)
    assert cache.answer("b", 60 * S - 1) is Answer.UNKNOWN
    assert cache.answer("b", 60 * S) is Answer.FETCH


def test_the_next_keys_replace_the_last_ones() -> None:
    cache = cache_at_zero("a")
    cache.fetched({"b": (KEY,)}, 40 * S, 40 * S)
    assert cache.answer("b", 40 * S) is Answer.USE
    assert cache.answer("a", 40 * S) is Answer.UNKNOWN
    assert cache.keys("a", 40 * S) == ()


def test_a_dead_issuer_is_asked_after_a_pause() -> None:
    cache = CachedKeys(TIMES)
    cache.failed("dead", 5)
    assert cache.error == "dead"
    assert cache.answer("a", 5 + FAILURE_PAUSE_NS - 1) is Answer.FAILED
    assert cache.answer("a", 5 + FAILURE_PAUSE_NS) is Answer.FETCH


def test_keys_serve_while_their_issuer_is_dead() -> None:
    cache = cache_at_zero("a")
    cache.failed("dead", 150 * S)
    assert cache.answer("a", 150 * S + FAILURE_PAUSE_NS - 1) is Answer.USE
    assert cache.answer("a", 150 * S + FAILURE_PAUSE_NS) is Answer.USE_AND_FETCH
    # Nothing is known of a new key. The issuer is asked when the pause is over.
    assert cache.answer("b", 150 * S) is Answer.UNKNOWN
    assert cache.answer("b", 150 * S + FAILURE_PAUSE_NS) is Answer.FETCH
    cache.failed("dead", 195 * S)
    assert cache.answer("a", 200 * S) is Answer.FAILED
    cache.fetched({"a": (KEY,)}, 206 * S, 206 * S)
    assert cache.error == ""
    assert cache.answer("a", 206 * S) is Answer.USE


STEPS = st.lists(
    st.tuples(st.integers(1, 60 * S), st.sampled_from(["ask a", "ask b", "fails", "brings"])),
    max_size=40,
)


@given(STEPS)
def test_whatever_happens(steps: list[tuple[int, str]]) -> None:
    """Fetches follow the answers and end at once: no key serves that is too old, no issuer is
    asked too often, and a key that is there and young always serves."""
    cache, now_ns, has_b = CachedKeys(TIMES), 0, False
    fetched_ns: int | None = None
    failed_ns: int | None = None
    is_down = False
    attempts: list[tuple[int, bool]] = []
    for wait_ns, event in steps:
        now_ns += wait_ns
        if event in ("fails", "brings"):
            is_down, has_b = event == "fails", has_b or event == "brings"
            continue
        name = event[-1]
        answer = cache.answer(name, now_ns)
        is_young = fetched_ns is not None and now_ns - fetched_ns < TIMES.expire_after_ns
        assert bool(cache.keys(name, now_ns)) == (answer in (Answer.USE, Answer.USE_AND_FETCH))
        assert is_young or answer in (Answer.FETCH, Answer.FAILED)
        if is_young and name == "a":
            assert answer in (Answer.USE, Answer.USE_AND_FETCH)
        if answer in (Answer.FETCH, Answer.USE_AND_FETCH):
            assert failed_ns is None or now_ns - failed_ns >= FAILURE_PAUSE_NS
            attempts.append((now_ns, is_down))
            if is_down:
                failed_ns = now_ns
                cache.failed("down", now_ns)
            else:
                fetched_ns, failed_ns = now_ns, None
                names = ("a", "b") if has_b else ("a",)
                cache.fetched(dict.fromkeys(names, (KEY,)), now_ns, now_ns)
        elif answer is Answer.FAILED:
            assert failed_ns is not None
            assert now_ns - failed_ns < FAILURE_PAUSE_NS
    for (earlier_ns, _), (later_ns, _) in pairwise(attempts):
        assert later_ns - earlier_ns >= min(FAILURE_PAUSE_NS, TIMES.miss_refresh_ns)
