"""Authentication: who a client is, by what it presents in CONNECT or with a request.

The providers of ``authenticationProviders`` are asked by the method that the client names, several
of one method in turn. A client without credentials, or with a method that no provider has, gets
``anonymousUserRole`` if there is one. A proxy (``proxyRoles``) names the client that it speaks for;
no other client may name one.

Credentials are checked at once, unless a provider needs time: only then there is a task.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headgate.base.identity import Identity
from headgate.broker.session_watch import SessionWatch
from headgate.policy.setting_info import names_of
from headgate.policy.settings import Settings
from headgate.security.errors import (
    CredentialsError,
    OriginalPrincipalError,
    UncheckedCredentialsError,
)
from headgate.security.failed_attempts import PERIOD_S, FailedAttempts
from headgate.security.provider import Credentials, Principal, Provider, is_role

logger = logging.getLogger("headgate.authentication")

SUCCESS: Final = "success"
FAILURE: Final = "failure"
UNCHECKED: Final = "unchecked"
RESULTS: Final = (SUCCESS, FAILURE, UNCHECKED)
"""How an attempt ends."""

_NOT_REPLACED: Final = frozenset({"tls"})
"""Methods whose credentials belong to the connection: a new certificate needs a new one."""

NO_CREDENTIALS: Final = "none"
"""What a client names that presents no credentials, and what its attempts count under."""

LINES_MAX: Final = 64
"""Most log lines about failures in a period of an address, so that thousands of addresses cannot
fill the log."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Everything that a client presents."""

    own: Credentials
    original_principal: str = ""
    """For whom it speaks, in its own words; empty if for itself."""
    original: Credentials | None = None
    """What that client presented, if a proxy forwards it."""
    can_forward: bool = True
    """Whether the protocol lets a proxy forward credentials: HTTP does not."""


@dataclass(frozen=True, slots=True)
class Session:
    """A client that is authenticated."""

    identity: Identity
    method: str
    """The method of the credentials that a refresh replaces; empty if it can replace none."""
    own: Principal
    original: Principal | None = None
    """Who the client behind a proxy is, by forwarded credentials."""

    @property
    def principals(self) -> tuple[Principal, ...]:
        """Whose credentials were accepted."""
        return (self.own,) if self.original is None else (self.own, self.original)

    @property
    def expires_s(self) -> float | None:
        """When the first of its credentials lapses, in seconds since the epoch; None: never."""
        instants = (each.expires_s for each in self.principals)
        return min((at for at in instants if at is not None), default=None)


_Steps = Generator[Awaitable[Principal], Principal, Session]
"""The way to a session: it yields what it waits for, and continues with the result."""
_PrincipalSteps = Generator[Awaitable[Principal], Principal, Principal]


class Authentication:
    """The authentication of one broker, for its connections and its web port."""

    def __init__(
        self,
        settings: Settings,
        providers: Sequence[Provider],
        attempts: FailedAttempts,
        now_s: Callable[[], float],
    ) -> None:
        """``attempts`` is also what bounds the checks of passwords; ``now_s`` is the wall clock,
        in seconds since the epoch."""
        self._settings = settings
        self.providers = tuple(providers)
        """In the order of the setting."""
        self._by_method: defaultdict[str, list[Provider]] = defaultdict(list)
        for provider in providers:
            self._by_method[provider.method].append(provider)
        self._attempts = attempts
        self._proxy_roles = frozenset(names_of(settings.proxyRoles))
        self._lines_count = 0
        self._lines_began_s = 0.0
        self._unlogged_count = 0
        self.now_s = now_s
        self.sessions = SessionWatch()
        """The sessions of connections whose credentials lapse."""
        self.why_revoked: Callable[[Principal, str], str] = lambda _, __: ""
        """Why a client may not be connected, by its principal and the role of the client behind it;
        empty if it may."""
        self.note_failure: Callable[[str, str, str], None] = lambda _, __, ___: None
        """Told of each failed attempt: its method, its address and the reason."""
        self.counts: Counter[tuple[str, str]] = Counter()
        """Attempts since the start, by method and result."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of all providers, in the order of the setting."""
        return tuple(self._by_method)

    def session(self, client: ClientCredentials) -> Session | asyncio.Task[Session]:
        """Authenticate a client. The task raises what this raises.

        Raises:
            UncheckedCredentialsError: its credentials are not checked now.
            OriginalPrincipalError: it may not speak for the client that it names, or names none.
            CredentialsError: its credentials are not accepted.
        """
        return _carried_out(self._counted(self._session(client), client.own))

    def refreshed(
        self, session: Session, credentials: Credentials
    ) -> Session | asyncio.Task[Session]:
        """``session`` with new credentials of the same client.

        Raises:
            UncheckedCredentialsError: they are not checked now.
            CredentialsError: they are not accepted, of another method or of another role.
        """
        return _carried_out(self._counted(self._refreshed(session, credentials), credentials))

    def check_not_revoked(self, session: Session, address: str) -> None:
        """Check a session in the turn in which it begins.

        Raises:
            CredentialsError: a role or a token of it is revoked.
        """
        for principal in session.principals:
            if why := self.why_revoked(principal, session.identity.original_role):
                method = session.method or NO_CREDENTIALS
                self.counts[method, FAILURE] += 1
                # The error that is raised is not kept here: its traceback leads to this frame.
                self._failed(method, address, CredentialsError(why))
                raise CredentialsError(why)

    def why_lapsed(self, session: Session, address: str) -> str:
        """Why the credentials of a session do not count any more: they have expired, or a role or a
        token was revoked. Empty if they do."""
        if session.expires_s is not None and self.now_s() >= session.expires_s:
            return "the credentials have expired"
        try:
            self.check_not_revoked(session, address)
        except CredentialsError as error:
            return str(error)
        return ""

    def log_ended_periods(self) -> None:
        """Log how many attempts failed since the last line about an address. Call once a second."""
        now_s = self.now_s()
        for address, failures in self._attempts.ended(now_s):
            self._log(now_s, "%s: %d further attempts to authenticate failed", address, failures)

    # -- the rules -------------------------------------------------------------------------

    def _session(self, client: ClientCredentials) -> _Steps:
        own = yield from self._principal(client.own)
        method = client.own.method
        named, original = client.original_principal, None
        is_proxy = own.role in self._proxy_roles
        if is_proxy and client.can_forward and self._settings.authenticateOriginalAuthData:
            if client.original is None:
                raise OriginalPrincipalError("a proxy must forward the credentials of its client")
            original = yield from self._principal(client.original)
            if named and named != original.role:
                raise OriginalPrincipalError(
                    "the original principal is not the role of the forwarded credentials"
                )
            named, method = original.role, client.original.method
        identity = self._identity(own.role, named)
        is_replaceable = method in self._by_method and method not in _NOT_REPLACED
        return Session(identity, method if is_replaceable else "", own, original)

    def _identity(self, role: str, named: str) -> Identity:
        """Pulsar's rules of an original principal."""
        if named.strip() and not is_role(named):
            raise OriginalPrincipalError("the original principal is no role")
        if role in self._proxy_roles:
            if not named.strip():
                raise OriginalPrincipalError("a proxy must name its client as original principal")
            if named in self._proxy_roles:
                raise OriginalPrincipalError("the original principal cannot be a proxy role")
            return Identity(role, named)
        if named and named != role:
            raise OriginalPrincipalError("only a proxy role may name an original principal")
        return Identity(role)

    def _refreshed(self, session: Session, credentials: Credentials) -> _Steps:
        if credentials.method != session.method:
            raise CredentialsError(
                f"the new credentials are of the method {credentials.method[:20]!r}, those before "
                f"of {session.method!r}"
            )
        found = yield from self._principal(credentials)
        before = session.own if session.original is None else session.original
        if found.role != before.role:
            raise CredentialsError("the new credentials are of another role")
        if session.original is None:
            return replace(session, own=found)
        return replace(session, original=found)

    def _principal(self, credentials: Credentials) -> _PrincipalSteps:
        providers = self._by_method.get(credentials.method)
        if not providers:
            if not self._settings.anonymousUserRole:
                raise CredentialsError(
                    f"there is no provider for the method {credentials.method[:20]!r}"
                    if credentials.method not in ("", NO_CREDENTIALS)
                    else "the client presented no credentials"
                )
            return Principal(self._settings.anonymousUserRole)
        problem: CredentialsError | None = None
        found: Principal | Awaitable[Principal] | None = None
        try:
            for provider in providers:
                try:
                    found = provider.principal(credentials, self.now_s())
                    return found if isinstance(found, Principal) else (yield found)
                except CredentialsError as error:
                    if problem is None or isinstance(error, UncheckedCredentialsError):
                        problem = error
            raise problem or CredentialsError("no provider took the credentials")
        finally:
            # An error's traceback leads to this frame, and so would the frame to its error.
            problem = found = None

    # -- counts and log lines --------------------------------------------------------------

    def _counted(self, steps: _Steps, credentials: Credentials) -> _Steps:
        method = credentials.method if credentials.method in self._by_method else NO_CREDENTIALS
        try:
            session = yield from steps
        except UncheckedCredentialsError as error:
            self.counts[method, UNCHECKED] += 1
            self._failed(method, credentials.address, error)
            raise
        except CredentialsError as error:
            self.counts[method, FAILURE] += 1
            self._failed(method, credentials.address, error)
            raise
        self.counts[method, SUCCESS] += 1
        return session

    def _failed(self, method: str, address: str, error: CredentialsError) -> None:
        now_s = self.now_s()
        self.note_failure(method, address, str(error))
        if self._attempts.failed(address, now_s):
            text = "%s: authentication failed (%s): %s"
            self._log(now_s, text, address or "an unknown address", method, error)

    def _log(self, now_s: float, text: str, address: str, *more: object) -> None:
        if not 0 <= now_s - self._lines_began_s < PERIOD_S:
            if self._unlogged_count:
                logger.warning(
                    "%d further lines about failed authentication of other addresses are left out",
                    self._unlogged_count,
                )
            self._lines_began_s, self._lines_count, self._unlogged_count = now_s, 0, 0
        if self._lines_count >= LINES_MAX:
            self._unlogged_count += 1
            return
        self._lines_count += 1
        logger.warning(text, address or "other addresses", *more)


def retrieve_error(task: asyncio.Task[Any]) -> None:
    """Retrieve the error of a task that all who waited for it may have left: asyncio reports one
    that is not retrieved."""
    if not task.cancelled():
        task.exception()


def _carried_out(steps: _Steps) -> Session | asyncio.Task[Session]:
    """The end of ``steps`` if they wait for nothing, else a task that carries out their rest. It
    runs to its end also if the client has left before it began."""
    try:
        waits_for = next(steps)
    except StopIteration as end:
        found: Session = end.value
        return found
    rest = asyncio.get_running_loop().create_task(_rest(steps, waits_for))
    rest.add_done_callback(retrieve_error)
    return rest


async def _rest(steps: _Steps, waits_for: Awaitable[Principal]) -> Session:
    try:
        while True:
            try:
                principal = await waits_for
            except CredentialsError as error:
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(principal)
    except StopIteration as end:
        found: Session = end.value
        return found
    finally:
        del waits_for  # its error's traceback leads to this frame
