"""How many passwords an address may try, and what is reported of its failures."""

from __future__ import annotations

import pytest

from headgate.security.failed_attempts import (
    PASSWORDS_MAX,
    PERIOD_S,
    EndedPeriod,
    FailedAttempts,
    network_of,
)

NOW_S = 1_800_000_000.0
A = "10.0.0.1"


def test_passwords_of_an_address_are_bounded_in_each_period() -> None:
    attempts = FailedAttempts()
    assert attempts.passwords_left(A, NOW_S) == PASSWORDS_MAX
    for left in reversed(range(PASSWORDS_MAX)):
        attempts.password_failed(A, NOW_S)
        assert attempts.passwords_left(A, NOW_S) == left
    attempts.password_failed(A, NOW_S)
    assert attempts.passwords_left(A, NOW_S + PERIOD_S - 0.1) == 0
    assert attempts.passwords_left("10.0.0.2", NOW_S) == PASSWORDS_MAX
    assert attempts.passwords_left(A, NOW_S + PERIOD_S) == PASSWORDS_MAX


def test_other_failures_take_no_passwords_away() -> None:
    attempts = FailedAttempts()
    for _ in range(1_000):
        attempts.failed(A, NOW_S)
    assert attempts.passwords_left(A, NOW_S) == PASSWORDS_MAX


def test_the_first_failure_is_reported_and_the_others_are_counted_by_period() -> None:
    attempts = FailedAttempts()
    assert [attempts.failed(A, NOW_S + i) for i in range(4)] == [True, False, False, False]
    assert attempts.ended(NOW_S + PERIOD_S - 1) == []
    assert attempts.ended(NOW_S + PERIOD_S) == [EndedPeriod(A, 3)]
    later_s = NOW_S + PERIOD_S + 1
    assert not attempts.failed(A, later_s), "it goes on: its count follows"
    assert attempts.ended(later_s + PERIOD_S) == [EndedPeriod(A, 1)]
    assert attempts.ended(later_s + 2 * PERIOD_S) == []
    assert len(attempts) == 0
    assert attempts.failed(A, later_s + 2 * PERIOD_S), "it begins anew"


def test_a_wrong_password_before_the_failure_is_reported_does_not_hide_it() -> None:
    attempts = FailedAttempts()
    attempts.password_failed(A, NOW_S)
    assert attempts.failed(A, NOW_S)
    assert not attempts.failed(A, NOW_S)


def test_a_single_failure_is_reported_once() -> None:
    attempts = FailedAttempts()
    assert attempts.failed(A, NOW_S)
    assert attempts.ended(NOW_S + PERIOD_S) == []
    assert len(attempts) == 0


def test_a_clock_that_is_set_back_blocks_nobody_for_long() -> None:
    attempts = FailedAttempts()
    for _ in range(PASSWORDS_MAX):
        attempts.password_failed(A, NOW_S)
    assert attempts.passwords_left(A, NOW_S - 1) == PASSWORDS_MAX
    assert attempts.ended(NOW_S - 1) == []
    assert len(attempts) == 0


def test_memory_is_bounded_and_no_failure_is_lost() -> None:
    attempts = FailedAttempts(addresses_max=3)
    for number in range(5):
        for _ in range(2):
            attempts.failed(f"10.0.0.{number}", NOW_S)
    assert len(attempts) == 3
    ended = attempts.ended(NOW_S + PERIOD_S)
    assert ended[0] == EndedPeriod("", 2), "of the two that were forgotten"
    assert [each.address for each in ended[1:]] == ["10.0.0.2", "10.0.0.3", "10.0.0.4"]


def test_the_address_that_failed_last_is_remembered() -> None:
    attempts = FailedAttempts(addresses_max=2)
    for address in ("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.3"):
        attempts.password_failed(address, NOW_S)
    assert attempts.passwords_left("10.0.0.1", NOW_S) == PASSWORDS_MAX - 2
    assert attempts.passwords_left("10.0.0.2", NOW_S) == PASSWORDS_MAX


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("sim-1", "sim-1"),
    ],
)
def test_what_counts_as_one_address(address: str, network: str) -> None:
    assert network_of(address) == network
