"""The group ``headgate pipeline``."""

from __future__ import annotations

from headgate.cli.group import LazyGroup

_HERE = "headgate.cli.pipeline"

pipeline_group = LazyGroup(
    name="pipeline",
    help=(
        "Find out why backlogs grew, from the telemetry of brokers.\n\n"
        "The commands need headgate[spark]; run, stream, attribute, forecast, backtest, sql "
        "and upgrade also need Java 17 or newer.\n\n"
        "Commands print rows to the standard output, stages and warnings to the standard error. "
        "The exit status is 0 on success, 1 if the job failed, 2 if the request is not allowed, "
        "3 if --fail-on or --fail-within found a match, and 130 after Ctrl-C.\n\n"
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
        "forecast": (
            f"{_HERE}.forecast:forecast_command",
            "Predict when backlog quotas are reached.",
        ),
        "backtest": (
            f"{_HERE}.backtest:backtest_command",
            "Replay other limits and quotas over the past.",
        ),
        "report": (f"{_HERE}.report:report_command", "Write one page about a time range."),
        "serve": (
            f"{_HERE}.serve:serve_command",
            "Serve the page over the tables, to look at the past.",
        ),
        "alerts": (
            f"{_HERE}.alerts:alerts_command",
            "Send open backlogs and quotas to Alertmanager or a webhook.",
        ),
        "compact": (f"{_HERE}.compact:compact_command", "Merge small files of the tables."),
        "upgrade": (
            f"{_HERE}.upgrade:upgrade_command",
            "Bring tables of an earlier release up to date.",
        ),
        "show": (f"{_HERE}.show:show_command", "Print rows of a table."),
        "sql": (f"{_HERE}.sql:sql_command", "Query the tables in SQL."),
        "views": (f"{_HERE}.views:views_command", "Print CREATE VIEW statements for an engine."),
    },
    no_args_is_help=True,
)
