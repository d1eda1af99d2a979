"""Patterns of topic names: meaning, hash and what they may cost."""

from __future__ import annotations

import time

import google_crc32c
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.topic_pattern import (
    PatternError,
    TopicPattern,
    TopicsHash,
    base_of,
    matching,
    without_domain,
)

BASE = "persistent://public/default/"


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("public/default/orders", True),
        ("persistent://public/default/orders", True),
        ("persistent://public/default/.*", True),
        ("^persistent://public/default/ord.*$", True),
        ("\\Qpersistent://public/default/orders\\E", True),
        ("public/default/order", False),
        ("orders", False),
        (".*rder.*", True),
        ("public/default/ORDERS", False),
        ("(?i)public/default/ORDERS", True),
        ("public/default/orders-partition-.*", False),
    ],
)
def test_a_pattern_matches_the_whole_name_without_domain_and_partition(
    pattern: str, matches: bool
) -> None:
    found = TopicPattern(pattern)
    assert found.matches(f"{BASE}orders") is matches
    assert found.matches(f"{BASE}orders-partition-3") is matches


def test_names_without_their_ends() -> None:
    assert base_of(f"{BASE}a-partition-12") == "public/default/a"
    assert base_of(f"{BASE}a-partition-x") == "public/default/a-partition-x"
    assert base_of(f"{BASE}-partition-1") == "public/default/"
    assert without_domain("a.*") == "a.*"


@pytest.mark.parametrize("pattern", ["(", "(?=a)b", "(a)\\1", "a{1001}", "[", "(?:a{1000}){1000}"])
def test_what_re2_cannot_match_in_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="no pattern of RE2's syntax"):
        TopicPattern(pattern)


@pytest.mark.parametrize("pattern", ["(\nINFO", "[\nINFO", "(?P<a\nINFO"])
def test_a_refusal_is_one_line(pattern: str) -> None:
    """RE2's own text repeats the pattern, and the refusal is a line of the log."""
    with pytest.raises(PatternError) as caught:
        TopicPattern(pattern)
    assert "\n" not in str(caught.value)


def test_a_large_program_is_refused() -> None:
    with pytest.raises(PatternError, match="1000 are allowed"):
        TopicPattern("(a|b|c){1,900}x?")


@pytest.mark.parametrize(
    "pattern",
    ["\\pL|[\\x{80}-\\x{10ffff}]{999}", "a{99\\PL/a{0,9}[k-z]+\\pN|[\\x{80}-\\x{10ffff}]{999}"],
)
def test_a_pattern_is_refused_before_it_has_a_very_large_program(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RE2 made 7,000 instructions of these, and took 7 ms each, counted as one."""
    sizes, compiled = list[int](), re2.compile

    def noted(expression: str, options: re2.Options) -> re2._Regexp[str]:
        found = compiled(expression, options)
        sizes.append(found.programsize)
        return found

    monkeypatch.setattr(re2, "compile", noted)
    with pytest.raises(PatternError):
        TopicPattern(pattern)
    assert sizes == []


@pytest.mark.parametrize(
    "pattern", ["(a?){490}", ".{124}", "(?:a|bc){330}", "[\\x{80}-\\x{10ffff}]{150}", "\\p{Lu}"]
)
def test_all_programs_that_are_allowed_pass_the_trial(pattern: str) -> None:
    assert TopicPattern(pattern).names_per_step > 0


def test_a_catastrophic_pattern_takes_no_longer_than_another() -> None:
    found = TopicPattern("public/default/(a+)+(a*)*(a|aa)+b")
    began = time.process_time()
    for _ in range(20):
        assert not found.matches(f"{BASE}{'a' * 400}")
    assert time.process_time() - began < 1


def test_a_larger_program_matches_fewer_names_at_once() -> None:
    small, large = TopicPattern("a"), TopicPattern("(a|b){400}")
    assert small.names_per_step > 4 * large.names_per_step > 0


def test_partitions_are_matched_with_their_topic() -> None:
    names = [f"{BASE}a-partition-{i}" for i in range(3)] + [f"{BASE}b", f"{BASE}hidden"]
    hidden = frozenset((f"{BASE}hidden",))
    assert matching(names, hidden, TopicPattern("public/default/a")) == names[:3]
    assert matching(names, hidden, TopicPattern("public/default/b")) == names[3:4]
    assert matching(names, hidden, None) == names[:4]


@given(st.lists(st.text(max_size=5)), st.integers(1, 4))
def test_the_hash_is_pulsars_however_the_names_come(names: list[str], step: int) -> None:
    found = TopicsHash()
    for start in range(0, len(names), step):
        found.add(names[start : start + step])
    whole = google_crc32c.value(",".join(names).encode())
    assert found.text == whole.to_bytes(4, "little").hex()
