"""The law of failed attempts: how many passwords an address may try, and what is logged of them.

An address has periods of :data:`PERIOD_S`, which begin with a failure. In each it may have
:data:`PASSWORDS_MAX` wrong passwords checked; further ones wait for the next period. Only passwords
are limited: they can be guessed, and a check costs tens of milliseconds. Tokens and certificates
can not be guessed and cost little, so that a client with good ones is served from an address that
others misuse.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

PERIOD_S: Final = 60.0
PASSWORDS_MAX: Final = 20
ADDRESSES_MAX: Final = 4_096
"""Addresses that are remembered; of more, those whose last failure is the longest ago are not."""

_PREFIX_BITS: Final = 64


class EndedPeriod(NamedTuple):
    """A period of an address in which attempts failed that were not reported yet."""

    address: str
    failures: int


@dataclass(slots=True)
class _Period:
    began_s: float
    is_reported: bool = False
    """Whether a failure of the address was reported, so that further ones are counted."""
    unreported: int = 0
    passwords: int = 0


class FailedAttempts:
    """The addresses from which attempts failed lately. Times are those of one clock, which may be
    set."""

    def __init__(self, addresses_max: int = ADDRESSES_MAX) -> None:
        self._addresses_max = addresses_max
        self._periods: OrderedDict[str, _Period] = OrderedDict()
        self._left_out = 0
        """Failures of addresses that are no longer remembered, which were not reported."""

    def __len__(self) -> int:
        return len(self._periods)

    def failed(self, address: str, now_s: float) -> bool:
        """An attempt failed. Returns whether it is the first of its address, and so is to be
        reported now; :meth:`ended` reports the others."""
        period = self._present(network_of(address), now_s)
        if not period.is_reported:
            period.is_reported = True
            return True
        period.unreported += 1
        return False

    def password_failed(self, address: str, now_s: float) -> None:
        """A password from an address was checked and is wrong."""
        self._present(network_of(address), now_s).passwords += 1

    def passwords_left(self, address: str, now_s: float) -> int:
        """How many wrong passwords of an address may still be checked in its present period."""
        period = self._periods.get(network_of(address))
        if period is None or self._is_over(period, now_s):
            return PASSWORDS_MAX
        return max(0, PASSWORDS_MAX - period.passwords)

    def ended(self, now_s: float) -> list[EndedPeriod]:
        """The periods that have ended since the last call, with failures that were not reported.
        An address without any is forgotten. Those without an address are of many."""
        found = [EndedPeriod("", self._left_out)] if self._left_out else []
        self._left_out = 0
        for name, period in list(self._periods.items()):
            if not self._is_over(period, now_s):
                continue
            if period.unreported:
                found.append(EndedPeriod(name, period.unreported))
                self._periods[name] = _Period(now_s, is_reported=True)
            else:
                del self._periods[name]
        return found

    def _present(self, name: str, now_s: float) -> _Period:
        period = self._periods.get(name)
        if period is None:
            period = self._periods[name] = _Period(now_s)
            if len(self._periods) > self._addresses_max:
                _, left_out = self._periods.popitem(last=False)
                self._left_out += left_out.unreported
        elif self._is_over(period, now_s):
            period.began_s, period.passwords = now_s, 0
        self._periods.move_to_end(name)
        return period

    @staticmethod
    def _is_over(period: _Period, now_s: float) -> bool:
        return not 0 <= now_s - period.began_s < PERIOD_S


def network_of(address: str) -> str:
    """What counts as one address: of IPv6 the first 64 bits, since one client has all that follow.
    An IPv4 address in an IPv6 one is itself. What is no address stays as it is."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{IPv6Address(int(found) >> _PREFIX_BITS << _PREFIX_BITS)}/{_PREFIX_BITS}"
