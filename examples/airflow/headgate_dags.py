"""Headgate's tables and alerts as Airflow DAGs, which only call commands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag


@dag(
    schedule="*/5 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=1),
)
def headgate_tables():
    """Every five minutes: read telemetry, then send what is wrong and what is over."""
    run = BashOperator(
        task_id="run",
        bash_command='headgate pipeline run --out "$HEADGATE_TABLES" $HEADGATE_SOURCE',
        retries=2,
        retry_delay=timedelta(minutes=1),
    )
    alerts = BashOperator(
        task_id="alerts",
        bash_command='headgate pipeline alerts --out "$HEADGATE_TABLES" $HEADGATE_ALERTS',
        # Also if nothing could be read: missing telemetry is an alert, and open ones must not end.
        trigger_rule="all_done",
    )
    run >> alerts


@dag(
    schedule="@daily", start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False, max_active_runs=1
)
def headgate_daily():
    """Once a day: a page about the day, then old rows and small files."""
    report = BashOperator(
        task_id="report",
        bash_command='headgate pipeline report --out "$HEADGATE_TABLES" --since 1d',
    )
    compact = BashOperator(
        task_id="compact",
        bash_command='headgate pipeline compact --out "$HEADGATE_TABLES" --vacuum --retain 30',
        trigger_rule="all_done",
    )
    report >> compact


headgate_tables()
headgate_daily()
