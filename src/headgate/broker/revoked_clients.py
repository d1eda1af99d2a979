"""Ends the connections of revoked roles and tokens, and refuses new ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final, Protocol, TypeVar

from headgate.base.identity import Identity
from headgate.base.units import MS_PER_S
from headgate.base.work_owner import NO_TENANT
from headgate.base.work_units import (
    CONNECTION_ENDED,
    JOB_STEP_UNITS_MAX,
    REVOCATIONS_LOOKED_UP_PER_UNIT,
)
from headgate.broker.work.scheduler import JobClass, Steps, WorkScheduler
from headgate.engine.engine import Engine
from headgate.policy.settings import Settings
from headgate.security.provider import Principal
from headgate.security.revocation import (
    NO_REVOCATIONS,
    Revocations,
    names_of_setting,
    revoked,
)

logger = logging.getLogger("headgate.connection")

PERIOD_S: Final = 0.5
"""A connection has ended a second after its role or token was revoked."""


class RevocableConnection(Protocol):
    """A client's connection, as far as a revocation concerns it."""

    address: str
    identity: Identity
    is_open: bool

    def close(self) -> None:
        """End the connection."""


C = TypeVar("C", bound=RevocableConnection)


def principals_by_role(connection: RevocableConnection) -> tuple[Principal, ...]:
    """Who a client is, by the role of its connection alone."""
    return (Principal(connection.identity.role),)


class RevokedClients:
    """The revocations of one broker, and what they mean for its clients.

    Who authenticates a client asks :meth:`why_refused` in the turn in which the client's identity
    is set. A revocation before that refuses it, and the sweep after a later one finds it.
    """

    def __init__(
        self,
        settings: Settings,
        connections: Collection[C],
        work: WorkScheduler,
        engine: Engine,
        principals_of: Callable[[C], Iterable[Principal]] = principals_by_role,
    ) -> None:
        """``principals_of`` are the client of a connection and the one behind it, by credentials of
        their own."""
        self._settings = settings
        self._work = work
        self._engine = engine
        self._walk: Callable[[], Steps] = partial(
            _walk, connections, principals_of, self.why_refused
        )
        self._texts = ("", "")
        self._of_settings = NO_REVOCATIONS
        self._of_file = NO_REVOCATIONS
        self._swept: tuple[Revocations, Revocations] = (NO_REVOCATIONS, NO_REVOCATIONS)
        """What all connections have been compared with."""

    def use_file(self, revocations: Revocations) -> None:
        """Replace the revocations of ``headgateRevocationFile``."""
        self._of_file = revocations

    def why_refused(self, principal: Principal, original_role: str = "") -> str:
        """Why a client may not be connected; empty if it may. The text is for the operator.

        ``original_role`` is that of the client behind a proxy."""
        now_s = self._engine.now_ms / MS_PER_S
        for revocations in self._in_force():
            if revocations.count and (why := revoked(principal, original_role, revocations, now_s)):
                return why
        return ""

    @staticmethod
    def period_s() -> float:
        """Seconds from one sweep to the next."""
        return PERIOD_S

    async def sweep(self) -> None:
        """If something was revoked since the last sweep, end the connections that it concerns, in
        slices between which the loop serves others."""
        in_force = self._in_force()
        if in_force[0] is self._swept[0] and in_force[1] is self._swept[1]:
            return
        if any(revocations.count for revocations in in_force):
            await self._work.run("ending revoked clients", JobClass.ADMIN, self._walk(), NO_TENANT)
        # What changed during the walk is not ``in_force``: the next sweep walks again.
        self._swept = in_force

    def _in_force(self) -> tuple[Revocations, Revocations]:
        settings = self._settings
        texts = settings.headgateRevokedRoles, settings.headgateRevokedTokenIds
        if texts != self._texts:
            self._of_settings = Revocations(*map(names_of_setting, texts))
            self._texts = texts
        return self._of_settings, self._of_file


def _walk(
    connections: Collection[C],
    principals_of: Callable[[C], Iterable[Principal]],
    why_refused: Callable[[Principal, str], str],
) -> Steps:
    units, ended_count, first = 0.0, 0, ""
    for connection in list(connections):
        units += 1 / REVOCATIONS_LOOKED_UP_PER_UNIT
        if connection.is_open:
            original_role = connection.identity.original_role
            reasons = (why_refused(each, original_role) for each in principals_of(connection))
            if why := next(filter(None, reasons), ""):
                first = first or f"{connection.address}: {why}"
                ended_count += 1
                units += CONNECTION_ENDED
                connection.close()
        if units >= JOB_STEP_UNITS_MAX - CONNECTION_ENDED:
            yield int(units)
            units = 0.0
    if ended_count:
        logger.warning("%d connections of revoked clients ended, the first %s", ended_count, first)
