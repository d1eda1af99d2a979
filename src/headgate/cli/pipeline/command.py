"""The group ``headgate pipeline``."""

from __future__ import annotations

from headgate.cli.group import LazyGroup

_HERE = "headgate.cli.pipeline"

pipeline_group = LazyGroup(
    name="pipeline",
    help=(
        "Say why backlogs grew, from what brokers publish about themselves.\n\n"
        "Needs headgate[spark]; run, stream, attribute, forecast and backtest also Java 17 "
        "or newer.\n\n"
        "Rows go to the standard output, stages and warnings to the standard error. The exit "
        "status is 0 when it is done, 1 when the job failed, 2 when what was asked cannot be, "
        "3 when --fail-on or --fail-within found what it looks for, and 130 after Ctrl-C.\n\n"
        "Begin with: headgate pipeline run --out tables"
    ),
    table={
        "run": (f"{_HERE}.ingest:run_command", "Bring all tables up to date, then end."),
        "stream": (
            f"{_HERE}.ingest:stream_command",
            "Keep the tables up to date until interrupted.",
        ),
        "attribute": (
            f"{_HERE}.attribute:attribute_command",
            "Judge each subscription over a time range.",
        ),
        "forecast": (f"{_HERE}.forecast:forecast_command", "Say when quotas will be reached."),
        "backtest": (
            f"{_HERE}.backtest:backtest_command",
            "Replay other limits and quotas over what happened.",
        ),
        "report": (f"{_HERE}.report:report_command", "Write one page about a time range."),
        "compact": (f"{_HERE}.compact:compact_command", "Tidy up the folder of the tables."),
        "show": (f"{_HERE}.show:show_command", "Print rows of a table."),
    },
    no_args_is_help=True,
)
