"""The verbs of ``headgate admin broker-stats``."""

from __future__ import annotations

import json
from typing import Any, Final

from headgate.cli.admin.command import VerbGroup
from headgate.cli.admin.output import as_json
from headgate.cli.admin.verbs import Action, Server, Values, Verb, echo, show, switch

_PATH: Final = "/admin/v2/broker-stats"
_INDENT: Final = switch("--indent -i", "indent", "Indent the JSON.")


def _figures(segment: str) -> Action:
    """Print JSON on one line, or indented."""

    def run(server: Server, values: Values) -> None:
        found: Any = server.get(f"{_PATH}/{segment}")
        is_indented = values["indent"]
        echo(as_json(found) if is_indented else json.dumps(found, separators=(",", ":")))

    return run


GROUP: Final = VerbGroup(
    "broker-stats",
    "Show figures of the whole broker.",
    (
        Verb("topics", "Show the figures of all topics.", (_INDENT,), _figures("topics")),
        Verb("destinations", "Another name for topics.", (_INDENT,), _figures("topics")),
        Verb("monitoring-metrics", "Show the sums of each namespace.", (_INDENT,),
             _figures("metrics")),
        Verb("load-report", "Show the broker's addresses and sums.", (),
             show(f"{_PATH}/load-report")),
    ),
)  # fmt: skip
