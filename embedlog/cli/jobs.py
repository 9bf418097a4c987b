"""Common parts of the verbs that run on Spark: a session, a job and its report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any

import click

from embedlog.cli.progress import bar

EXIT_FOUND = 1
MASTER = click.Option(["--master"], help="master of Spark, such as local[4]")
JSON = click.Option(["--json", "as_json"], is_flag=True, help="JSON")


def run_job(
    name: str, *arguments: Any, master: str | None, as_json: bool, shows: str = "", **settings: Any
) -> dict[str, Any]:
    """Run `embedlog.spark.jobs.NAME`, print its report, and return the report's counts.

    `shows` is what its progress bar counts: "bytes", or "offsets"; "" for a job without progress.
    """
    is_bytes = shows == "bytes"
    shown = bar(name if is_bytes else shows, of_bytes=is_bytes) if shows else nullcontext()
    with spark_session(name, master) as spark, shown as progress:
        if progress is not None:
            settings["progress"] = progress
        # Import it only now: without PySpark, `spark_session` has failed with a clear error.
        job = getattr(import_module(f"embedlog.spark.jobs.{name}"), name)
        report = job(spark, *arguments, **settings)
    counts: dict[str, Any] = report.counts
    if as_json:
        click.echo(json.dumps(report.as_dict()))
        return counts
    for row in report.rows:
        click.echo(", ".join(f"{name} {value}" for name, value in row.items() if value != 0))
    click.echo(f"{report.job}: " + ", ".join(f"{k} {v}" for k, v in counts.items()))
    return counts


@contextmanager
def spark_session(name: str, master: str | None, secrets: Sequence[str] = ()) -> Iterator[Any]:
    """Yield a Spark session. A session that was open before stays open.

    Spark's errors come without the `secrets` in them.
    """
    from embedlog.spark.pipeline.running.spark_session import is_open, open_session, spark_errors

    is_new = not is_open()
    session = open_session(name, master=master)
    try:
        with spark_errors(secrets):
            yield session
    finally:
        if is_new:
            session.stop()
