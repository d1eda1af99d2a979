"""Right passwords are remembered for a minute, as keyed digests."""

from __future__ import annotations

from headgate.security.password_cache import FRESH_S, PasswordCache
from headgate.security.provider import Principal

NOW_S = 1_800_000_000.0
KEY = b"k" * 32
ANN = Principal("ann")


def test_a_right_password_is_fresh_for_a_minute_and_known_after_it() -> None:
    cache = PasswordCache(KEY)
    digest = cache.digest(b"ann:secret")
    assert cache.fresh(digest, NOW_S) is None
    assert cache.last_known(digest) is None
    cache.was_right(digest, ANN, NOW_S)
    assert cache.fresh(digest, NOW_S + FRESH_S - 0.1) == ANN
    assert cache.fresh(digest, NOW_S + FRESH_S) is None
    assert cache.fresh(digest, NOW_S - 1) is None, "the clock was set back"
    assert cache.last_known(digest) == ANN
    cache.was_wrong(digest)
    assert cache.last_known(digest) is None


def test_digests_depend_on_the_key_and_tell_nothing() -> None:
    first, second = PasswordCache(KEY), PasswordCache(b"j" * 32)
    assert first.digest(b"ann:secret") == PasswordCache(KEY).digest(b"ann:secret")
    assert first.digest(b"ann:secret") != second.digest(b"ann:secret")
    assert first.digest(b"ann:secret") != first.digest(b"ann:Secret")
    assert b"secret" not in first.digest(b"ann:secret")


def test_the_one_that_was_used_longest_ago_goes() -> None:
    cache = PasswordCache(KEY, entries_max=2)
    for digest in (b"a", b"b"):
        cache.was_right(digest, ANN, NOW_S)
    cache.fresh(b"a", NOW_S)
    cache.was_right(b"c", ANN, NOW_S)
    assert len(cache) == 2
    assert cache.last_known(b"b") is None
    assert cache.last_known(b"a") == ANN
