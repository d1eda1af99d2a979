"""Which commands of the binary protocol have a line in the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from headgate.base.audit_entry import AuditEntry, AuditResult, result_of
from headgate.base.errors import HeadgateError, StorageError
from headgate.base.names import InvalidNameError
from headgate.broker.audit import CONNECTING, AuditLog
from headgate.broker.authorization import DEMANDS
from headgate.broker.connection.client_connection import ClientConnection
from headgate.metadata.errors import RefusalError
from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from headgate.wire.messages import BaseCommand

Check = Callable[[ClientConnection, BaseCommand], None]
WaitingHandler = Callable[[ClientConnection, BaseCommand], Coroutine[Any, Any, None]]


class CommandAudit:
    """Notes refused commands, and what became of those that create, delete or move something."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def checked(self, check: Check) -> Check:
        """``check``, with a line for each command that a client may not have carried out."""

        def check_and_note(connection: ClientConnection, command: BaseCommand) -> None:
            try:
                check(connection, command)
            except RefusalError as refusal:
                entry = _entry(connection, command, result_of(refusal.status))
                self._log.note(_with(entry, entry.result, refusal.reason, refusal.status))
                raise

        return check_and_note

    def noted(self, handler: WaitingHandler) -> WaitingHandler:
        """``handler``, with a line when it has ended."""

        async def carry_out(connection: ClientConnection, command: BaseCommand) -> None:
            is_connecting = COMMANDS[command.type].operation in CONNECTING
            # Before, because an UNSUBSCRIBE removes the consumer that knows its subscription. Of
            # those that connect, which come in crowds, an entry is made only if it is written.
            early = None if is_connecting else _entry(connection, command, AuditResult.ALLOWED)

            def note(result: AuditResult, reason: str, status: int = 0) -> None:
                entry = early or _entry(connection, command, result)
                self._log.note(_with(entry, result, reason, status))

            try:
                await handler(connection, command)
            except asyncio.CancelledError:
                note(AuditResult.FAILED, "the connection ended before the command did")
                raise
            except RefusalError as refusal:
                note(result_of(refusal.status), refusal.reason, refusal.status)
                raise
            except HeadgateError as error:
                is_failure = isinstance(error, StorageError)
                note(AuditResult.FAILED if is_failure else AuditResult.REFUSED, str(error))
                raise
            except Exception as error:
                reason = f"unexpected {type(error).__name__}; the broker's log has more"
                note(AuditResult.FAILED, reason)
                raise
            if early is not None or self._log.notes_connecting:
                note(AuditResult.ALLOWED, "")

        return carry_out


def _entry(connection: ClientConnection, command: BaseCommand, result: AuditResult) -> AuditEntry:
    facts = COMMANDS[command.type]
    try:
        demands = iter(DEMANDS[command.type](connection, command))
        _, resource, subscription = next(demands, ("", "", ""))
    except InvalidNameError:
        resource = subscription = ""
    return AuditEntry(
        operation=facts.operation,
        resource=resource,
        result=result,
        identity=connection.identity,
        address=connection.address.removeprefix("/"),
        subscription=subscription,
        request=CommandType(command.type).name,
    )


def _with(entry: AuditEntry, result: AuditResult, reason: str, status: int = 0) -> AuditEntry:
    return replace(entry, result=result, reason=reason, status=status)
