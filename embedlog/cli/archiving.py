"""`embedlog pipeline archive, restore, diff`: jobs on Spark between topics and Parquet.

Exit status: 0 success; 1 `diff` found a difference; 2 the command failed.
"""

from __future__ import annotations

from typing import Any

import click

from embedlog.cli.jobs import EXIT_FOUND, JSON, MASTER, run_job

_TABLE = click.Argument(["table"], metavar="TABLE")
_PATH = click.Option(["--path"], help="data directory of the log")
_SERVERS = click.Option(["--bootstrap-servers"], help="or the address of a cluster")
_TOPICS = click.Option(["--topic", "topics"], multiple=True, help="may come several times")
_READ_COMMITTED = click.Option(["--read-committed"], is_flag=True, help="leave aborted records out")


@click.command(
    params=[
        _TABLE,
        _PATH,
        _SERVERS,
        _TOPICS,
        click.Option(["--commit-records"], type=click.IntRange(min=1), default=10_000_000,
                     show_default=True, help="about this many records a commit"),
        click.Option(["--allow-loss"], is_flag=True, help="continue although retention "
                     "deleted records before they were archived"),
        _READ_COMMITTED,
        MASTER,
        JSON,
    ],
)  # fmt: skip
def archive(
    table: str,
    *,
    commit_records: int,
    allow_loss: bool,
    master: str | None,
    as_json: bool,
    **where: Any,
) -> None:
    """Add new records of topics to the Parquet TABLE, each record once. In a data directory,
    retention of topics with embedlog.retention.archived waits for the archive.
    """
    run_job(
        "archive", _log(**where), table, master=master, as_json=as_json, shows="offsets",
        commit_records=commit_records, allow_loss=allow_loss,
    )  # fmt: skip


@click.command(
    params=[
        _TABLE,
        _PATH,
        _SERVERS,
        _TOPICS,
        click.Option(["--where"], default="true", help="SQL over the columns, such as "
                     "\"timestamp >= '2026-01-01'\""),
        click.Option(["--as", "names"], multiple=True, metavar="TOPIC=NAME",
                     help="another name; may come several times"),
        click.Option(["--append"], is_flag=True, help="also to topics that have records"),
        MASTER,
        JSON,
    ],
)  # fmt: skip
def restore(
    table: str, *, topics: tuple[str, ...], where: str, names: tuple[str, ...], **how: Any
) -> None:
    """Write records of the Parquet TABLE to topics, in their partitions and order. A second run
    into a data directory writes nothing twice.
    """
    pairs = [each.partition("=") for each in names]
    if not all(old and new for old, _, new in pairs):
        raise click.UsageError("--as: TOPIC=NAME is expected")
    given = {old: new for old, _, new in pairs}
    from embedlog.spark.jobs.topics import Selection

    run_job("restore", table, chosen=Selection(topics, where), names=given, **how)


@click.command(params=[_TABLE, _PATH, _SERVERS, _TOPICS, _READ_COMMITTED, MASTER, JSON])
def diff(table: str, *, master: str | None, as_json: bool, **where: Any) -> int:
    """Compare the Parquet TABLE of an archive with its log, where both have records. Exit status 1
    when they differ.
    """
    counts = run_job("diff", table, _log(**where), master=master, as_json=as_json)
    return EXIT_FOUND if counts["differing"] else 0


def _log(
    *,
    topics: tuple[str, ...],
    path: str | None,
    bootstrap_servers: str | None,
    read_committed: bool,
) -> Any:
    """Return the topics that a job reads: a `JobTopics`."""
    from embedlog.spark.jobs.topics import JobTopics

    options = {"kafka.isolation.level": "read_committed"} if read_committed else {}
    return JobTopics(topics, path, bootstrap_servers, options)
