"""The part of a connection that finds out who its client is: CONNECT and AUTH_RESPONSE.

CONNECT is authenticated before the broker does anything else for the client. If that takes longer,
the connection takes no command meanwhile, and the time-out of the handshake goes on. A client whose
credentials lapse is asked for new ones before (AUTH_CHALLENGE); the connection ends when they have
lapsed without an answer, and when the answer is of another role.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from headgate.base.errors import HeadgateError
from headgate.base.work_units import COLD, CONNECTION_ENDED
from headgate.broker.authentication import (
    NO_CREDENTIALS,
    Authentication,
    ClientCredentials,
    Session,
)
from headgate.broker.connection.address_counts import host_of
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.ended_connection import ENDED, IGNORE
from headgate.broker.connection.refusals import RefusalLogger, protocol_error
from headgate.broker.info import BrokerInfo
from headgate.policy.settings import Settings
from headgate.security.errors import CredentialsError, UncheckedCredentialsError
from headgate.security.provider import Credentials, Principal
from headgate.wire import encode
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.ids import NO_REQUEST
from headgate.wire.messages import BaseCommand, CommandConnect
from headgate.wire.peer import Peer, peer_of
from headgate.wire.state_machine import ProtocolStateMachine

Check = Callable[[ClientConnection, BaseCommand], None]
"""Raises :class:`RefusalError` if the client may not have a command carried out."""

_WATCHED_FOR_EVER: Final = float("inf")


class Handshake:
    """Authenticates one connection."""

    __slots__ = (
        "_accept", "_authentication", "_certificate", "_check", "_connection", "_info",
        "_is_challenged", "_refusals", "_session", "_settings", "_state_machine", "due_s",
    )  # fmt: skip

    def __init__(
        self,
        connection: ClientConnection,
        state_machine: ProtocolStateMachine,
        authentication: Authentication | None,
        check: Check,
        settings: Settings,
        info: BrokerInfo,
        refusals: RefusalLogger,
        *,
        accept: Callable[[Peer], None],
        certificate: Callable[[], Mapping[str, Any] | None],
    ) -> None:
        """``authentication`` is None if every client is taken as it comes. ``accept`` opens the
        connection for commands and says so to the client. ``certificate`` gives the client's, if
        TLS verified one."""
        self._connection = connection
        self._refusals = refusals
        self._state_machine = state_machine
        self._authentication = authentication
        self._check = check
        self._settings = settings
        self._info = info
        self._accept = accept
        self._certificate = certificate
        self._session: Session | None = None
        self._is_challenged = False
        """Whether the client was asked for new credentials and has not answered."""
        self.due_s = _WATCHED_FOR_EVER

    def forget_connection(self) -> None:
        """Refer to the connection no more, which has ended."""
        self._connection = ENDED
        self._accept = IGNORE
        self._certificate = _no_certificate

    @property
    def principals(self) -> tuple[Principal, ...]:
        """Whose credentials were accepted."""
        session = self._session
        return () if session is None else session.principals

    def connect(self, command: BaseCommand) -> None:
        """Carry out CONNECT: welcome the client, or refuse it and end the connection."""
        authentication = self._authentication
        if authentication is None:
            self._welcome(command, None)
            return
        try:
            found = authentication.session(self._presented(command.connect))
        except HeadgateError as error:
            self._refuse(command, error)
            return
        if isinstance(found, Session):
            self._welcome(command, found)
            return
        self._state_machine.await_authentication()
        self._connection.run_waiting(self._welcome_later(command, found), command)

    def auth_response(self, command: BaseCommand) -> None:
        """Carry out AUTH_RESPONSE: take new credentials, or end the connection.

        Raises:
            RemoteProtocolError: there was no challenge.
        """
        authentication, session = self._authentication, self._session
        if authentication is None or session is None or not self._is_challenged:
            raise RemoteProtocolError("AUTH_RESPONSE arrived without AUTH_CHALLENGE")
        self._is_challenged = False
        response = command.authResponse.response
        method = response.auth_method_name or session.method
        credentials = self._credentials(method, response.auth_data)
        try:
            found = authentication.refreshed(session, credentials)
        except HeadgateError as error:
            self._refuse_refresh(error)
            return
        if isinstance(found, Session):
            self._refresh(found)
        else:
            self._connection.run_waiting(self._refresh_later(found), command)

    def look(self, now_s: float) -> int:
        """Ask for new credentials, or end the connection if the present ones have lapsed; returns
        the work units."""
        connection, session = self._connection, self._session
        expires_s = None if session is None else session.expires_s
        if session is None or expires_s is None or not connection.is_open:
            self.stop()
            return COLD
        if now_s >= expires_s:
            self._refusals.ended(
                connection,
                "%s: the credentials of %s have lapsed%s: the connection ends",
                session.identity.text,
                " and the client sent no others" if self._is_challenged else "",
            )
            connection.close()
            return CONNECTION_ENDED
        self._is_challenged = True
        self.due_s = expires_s
        peer = connection.peer
        version = 0 if peer is None else peer.version
        connection.write(
            encode.auth_challenge(
                session.method, protocol_version=version, server_version=self._info.version
            )
        )
        return COLD

    def stop(self) -> None:
        """The connection has ended."""
        if self._authentication is not None:
            self._authentication.sessions.discard(self)

    # -- CONNECT ---------------------------------------------------------------------------

    def _presented(self, connect: CommandConnect) -> ClientCredentials:
        original = None
        if connect.HasField("original_auth_data"):
            method = connect.original_auth_method or NO_CREDENTIALS
            # The certificate is the proxy's own, not that of its client.
            data = connect.original_auth_data.encode()
            original = Credentials(method, data, None, host_of(self._connection.address))
        return ClientCredentials(
            self._credentials(connect.auth_method_name or NO_CREDENTIALS, connect.auth_data),
            connect.original_principal,
            original,
        )

    def _credentials(self, method: str, data: bytes) -> Credentials:
        return Credentials(method, data, self._certificate(), host_of(self._connection.address))

    async def _welcome_later(self, command: BaseCommand, found: asyncio.Task[Session]) -> None:
        try:
            session = await found
        except HeadgateError as error:
            self._refuse(command, error)
            return
        except Exception:
            self._connection.close()
            raise
        finally:
            del found  # its error's traceback leads to this frame
        self._welcome(command, session)

    def _welcome(self, command: BaseCommand, session: Session | None) -> None:
        connection = self._connection
        if not connection.is_open:
            return
        try:
            if session is not None:
                self._check_not_revoked(session)
                connection.identity = session.identity
            self._check(connection, command)
        except HeadgateError as error:
            self._refuse(command, error)
            return
        self._state_machine.authenticated()
        self._accept(peer_of(command.connect))
        if session is not None:
            self._watch(session)

    def _refuse(self, command: BaseCommand, error: HeadgateError) -> None:
        connection = self._connection
        if not connection.is_open:
            return
        if isinstance(error, CredentialsError):
            # Authentication has logged it, within its bound.
            connection.write(encode.error(NO_REQUEST, *protocol_error(error)))
        else:
            connection.refuse(command, error)
        connection.close()

    # -- new credentials -------------------------------------------------------------------

    async def _refresh_later(self, found: asyncio.Task[Session]) -> None:
        try:
            session = await found
        except HeadgateError as error:
            self._refuse_refresh(error)
            return
        except Exception:
            self._connection.close()
            raise
        finally:
            del found
        self._refresh(session)

    def _refresh(self, session: Session) -> None:
        if not self._connection.is_open:
            return
        try:
            self._check_not_revoked(session)
        except CredentialsError as error:
            self._refuse_refresh(error)
        else:
            self._watch(session)

    def _check_not_revoked(self, session: Session) -> None:
        """In the turn in which the session begins: a revocation before it is found here, one after
        it by the sweep."""
        if self._authentication is not None:
            self._authentication.check_not_revoked(session, host_of(self._connection.address))

    def _refuse_refresh(self, error: HeadgateError) -> None:
        connection, session = self._connection, self._session
        if not connection.is_open:
            return
        if isinstance(error, UncheckedCredentialsError) and session is not None:
            self._watch(session)  # the client is asked again while it has time left
        else:
            self._refusals.ended(connection, "%s: the new credentials are refused: %s", error)
            code, text = protocol_error(error)
            connection.write(encode.error(NO_REQUEST, code, text))
            connection.close()

    def _watch(self, session: Session) -> None:
        """Look at a session when its client must be asked for new credentials; if it cannot be
        asked, when those that it has lapse."""
        authentication, peer = self._authentication, self._connection.peer
        self._session = session
        expires_s = session.expires_s
        if authentication is None or expires_s is None:
            self.stop()
            return
        now_s = authentication.now_s()
        self.due_s = expires_s
        if session.method and peer is not None and peer.refreshes_credentials:
            before_s = self._settings.authenticationRefreshCheckSeconds
            self.due_s = max(expires_s - before_s, now_s + (expires_s - now_s) / 2)
        authentication.sessions.add(self)


def _no_certificate() -> Mapping[str, Any] | None:
    return None
