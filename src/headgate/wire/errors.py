"""Protocol errors, with the answer to each.

Only :class:`RemoteProtocolError` may leave the decoder and the connection table when bytes from
a peer are fed to them; any other exception type from there is a bug of this package.
"""

from __future__ import annotations

from headgate.base.errors import HeadgateError
from headgate.wire.codes import ServerError
from headgate.wire.messages import BaseCommand


class ProtocolError(HeadgateError):
    """Root of both; catch one of the subclasses instead."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the protocol. Its connection is to be closed; nobody else is affected.

    ``server_error`` is the code to put into a reply where the protocol still allows one.
    """

    def __init__(
        self, message: str, *, server_error: ServerError = ServerError.UNKNOWN_ERROR
    ) -> None:
        super().__init__(message)
        self.server_error = server_error


class CommandTooLongError(RemoteProtocolError):
    """A command is longer than is allowed, or has more parts. It was read over: the decoder goes
    on with the next frame, and the connection may, too.

    ``command`` is what is known of it, enough for its refusal; required fields may be missing.
    """

    def __init__(self, message: str, command: BaseCommand) -> None:
        super().__init__(message, server_error=ServerError.NOT_ALLOWED_ERROR)
        self.command = command


class LocalProtocolError(ProtocolError):
    """Our own code asked this package for something that cannot be put on the wire."""
