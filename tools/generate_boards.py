"""Write the Grafana boards of deploy/grafana/ from tools/boards/ and deploy/prometheus/.

``--check`` changes nothing and fails when a committed board differs from what would be written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boards.backlogs import backlogs_board
from boards.limits import limits_board
from boards.plain_pulsar import plain_pulsar_board
from boards.publishing import publishing_board
from boards.quotas import quotas_board
from committed_files import write_or_check

FOLDER = Path("deploy/grafana")


def boards() -> dict[str, dict[str, Any]]:
    """All boards by the name of their file."""
    return {
        "backlogs": backlogs_board(),
        "limits": limits_board(),
        "quotas": quotas_board(),
        "publishing": publishing_board(),
        "plain-pulsar": plain_pulsar_board(),
    }


def files() -> Mapping[Path, str]:
    """Each board as JSON, as Grafana imports and provisions it."""
    return {
        FOLDER / f"{name}.json": f"{json.dumps(board, indent=2, ensure_ascii=False)}\n"
        for name, board in boards().items()
    }


if __name__ == "__main__":
    raise SystemExit(write_or_check(__doc__, files))
