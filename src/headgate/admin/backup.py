"""Routes of backups: they hold the files of the broker while a tool on its host copies them."""

from __future__ import annotations

from headgate.admin.operations import Operation
from headgate.admin.routing import NO_CONTENT, Call, Reply, Route, as_json
from headgate.facade.protocol import BackupHold


async def begin_backup(call: Call) -> Reply:
    """Hold the present state for a backup. The lease must be renewed."""
    return as_json(await call.facade.begin_backup())


async def renew_backup(call: Call) -> Reply:
    """Renew the lease; 409 if the state was not held until now."""
    await call.facade.renew_backup(call.params["backup"])
    return NO_CONTENT


async def end_backup(call: Call) -> Reply:
    """End a backup; 409 if the state was not held until now."""
    await call.facade.end_backup(call.params["backup"])
    return NO_CONTENT


_BACKUP_ROUTE = "/admin/v2/headgate/backup"
_B = Operation.BROKER_BACKUP

ROUTES = (
    Route("POST", _BACKUP_ROUTE, _B, begin_backup, "Hold the files for a backup", reply=BackupHold),
    Route("PUT", f"{_BACKUP_ROUTE}/{{backup}}", _B, renew_backup, "Renew the lease of a backup"),
    Route("DELETE", f"{_BACKUP_ROUTE}/{{backup}}", _B, end_backup, "End a backup"),
)
