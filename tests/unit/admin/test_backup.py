"""Backups over HTTP."""

from __future__ import annotations

from tests.unit.admin.conftest import Ask

B = "/admin/v2/headgate/backup"


def test_a_backup_is_begun_renewed_and_ended(api: Ask) -> None:
    answer = api("POST", B)
    assert answer.json() == {
        "id": "b1",
        "dataDirectory": "/data",
        "sourceDirectory": "/data/backup-source",
        "leaseS": 30.0,
    }
    assert api("POST", B).status == 409
    assert api("PUT", f"{B}/b1").status == 204
    assert api("PUT", f"{B}/b2").status == 404
    assert api("DELETE", f"{B}/b2").status == 404
    assert api("DELETE", f"{B}/b1").status == 204
    assert api("DELETE", f"{B}/b1").status == 404
    assert api("GET", B).status == 405
