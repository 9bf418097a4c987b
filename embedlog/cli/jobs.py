"""Common parts of the verbs that run on Spark: a session, a report."""

from __future__ import annotations

import json
from contextlib import contextmanager

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from embedlog.spark.jobs.report import Report

EXIT_FOUND = 1
MASTER = click.Option(["--master"], help="master of Spark, such as local[4]")
JSON = click.Option(["--json", "as_json"], is_flag=True, help="JSON")


def show(report: Report, as_json: bool) -> None:
    """Print a job's report."""
    if as_json:
        click.echo(json.dumps(report.as_dict()))
        return
    for row in report.rows:
        click.echo(", ".join(f"{name} {value}" for name, value in row.items() if value != 0))
    click.echo(f"{report.job}: " + ", ".join(f"{k} {v}" for k, v in report.counts.items()))


@contextmanager
def spark_session(name: str, master: str | None) -> Iterator[Any]:
    """Yield a Spark session. A session that was open before stays open."""
    from embedlog.spark.pipeline.running.spark_session import is_open, open_session, spark_errors

    is_new = not is_open()
    session = open_session(name, master=master)
    try:
        with spark_errors():
            yield session
    finally:
        if is_new:
            session.stop()
