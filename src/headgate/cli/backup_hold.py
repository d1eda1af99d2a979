"""A running broker that holds its files for ``headgate backup``, asked over its admin API."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import msgspec

from headgate.access.admin_api import AccessRefusedError, AdminApi, UnreachableError, reason_in
from headgate.app.backup.manifest import BackupError
from headgate.base.errors import HeadgateError

_ROUTE: Final = "/admin/v2/headgate/backup"
_TIMEOUT_S: Final = 60.0
BEGIN_S_MAX: Final = 40.0
"""How long a backup waits to begin: longer than the lease of one whose command was killed."""
_OK: Final = 300
_CONFLICT: Final = 409
_RENEWALS: Final = 5
"""How often a lease is renewed in its time."""


class _Held(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of a broker that holds its files."""

    id: str
    data_directory: str
    source_directory: str
    lease_s: float


class RunningHold:
    """The hold of one backup."""

    def __init__(self, api: AdminApi, answer: _Held, now_s: Callable[[], float]) -> None:
        """For :meth:`begin` only."""
        self.data_path = answer.data_directory
        self.source_path = answer.source_directory
        self._api = api
        self._path = f"{_ROUTE}/{quote(answer.id, safe='')}"
        self._now_s = now_s
        self._every_s = answer.lease_s / _RENEWALS
        self._due_s = now_s() + self._every_s

    @classmethod
    def begin(
        cls,
        api: AdminApi,
        now_s: Callable[[], float],
        sleep: Callable[[float], None],
        on_wait: Callable[[str], None],
    ) -> RunningHold:
        """Ask the broker to hold its files. While another backup is under way it asks again, up to
        :data:`BEGIN_S_MAX`: that may be one whose command was killed. Before it waits for the first
        time it calls ``on_wait`` with the broker's reason.

        Raises:
            BackupError: the broker refused, or what answers is none.
            AccessRefusedError: it refuses the credentials.
            AdminUrlError, UnreachableError: it cannot be asked.
        """
        until_s = now_s() + BEGIN_S_MAX
        is_waiting = False
        while True:
            status, text = _ask(api, _ROUTE, "POST")
            if status < _OK:
                return cls(api, _held(api, text), now_s)
            if status != _CONFLICT or now_s() >= until_s:
                raise BackupError(f"{api.url} does not begin a backup: {_reason(api, text)}")
            if not is_waiting:
                is_waiting = True
                on_wait(_reason(api, text))
            sleep(1)

    def tick(self) -> None:
        """Renew the lease if that is due.

        Raises:
            BackupError: the files are not held any more.
        """
        if self._now_s() >= self._due_s:
            self._checked("PUT")
            self._due_s = self._now_s() + self._every_s

    def confirm(self) -> None:
        """End the hold. Raises :class:`BackupError` if the files were not held until now."""
        self._checked("DELETE")

    def abandon(self) -> None:
        """End the hold of a backup that failed, as far as the broker can be asked."""
        with contextlib.suppress(HeadgateError):
            _ask(self._api, self._path, "DELETE")

    def _checked(self, method: str) -> None:
        try:
            status, text = _ask(self._api, self._path, method)
        except UnreachableError as error:
            raise BackupError(f"the broker went away during the backup: {error}") from error
        except AccessRefusedError as error:
            raise BackupError(f"the broker no longer holds its files: {error}") from error
        if status >= _OK:
            raise BackupError(f"the broker no longer holds its files: {_reason(self._api, text)}")


def _held(api: AdminApi, text: str) -> _Held:
    try:
        return msgspec.json.decode(text, type=_Held)
    except msgspec.MsgspecError as error:
        raise BackupError(f"{api.url} answers as no broker does: {error}") from error


def _ask(api: AdminApi, path: str, method: str) -> tuple[int, str]:
    reply, body = api.ask(path, timeout_s=_TIMEOUT_S, method=method)
    return reply.status, body.decode(errors="replace")


def _reason(api: AdminApi, text: str) -> str:
    """The reason in an answer of the admin API."""
    if reason := reason_in(text.encode()):
        return api.without_secrets(reason)
    return api.without_secrets(text)[:200] or "no reason given"
