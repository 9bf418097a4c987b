"""`embedlog pipeline archive, restore, diff`: jobs on Spark between topics and Parquet.

Exit status: 0 success; 1 `diff` found a difference; 2 the command failed.
"""

from __future__ import annotations

import click

from embedlog.cli.jobs import EXIT_FOUND, JSON, MASTER, show, spark_session
from embedlog.cli.progress import bar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.spark.jobs.topics import JobTopics

_TABLE = click.Argument(["table"], metavar="TABLE")
_PATH = click.Option(["--path"], help="data directory of the log")
_SERVERS = click.Option(["--bootstrap-servers"], help="or the address of a cluster")
_TOPICS = click.Option(["--topic", "topics"], multiple=True, help="may come several times")

_READ_COMMITTED = click.Option(["--read-committed"], is_flag=True, help="leave aborted records out")


def commands() -> list[click.Command]:
    """Return the verbs."""
    return [_archive(), _restore(), _diff()]


def _archive() -> click.Command:
    return click.Command(
        "archive",
        callback=archive,
        help="Add new records of topics to the Parquet TABLE, each record once. In a data "
        "directory, retention of topics with embedlog.retention.archived waits for the archive.",
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


def _restore() -> click.Command:
    return click.Command(
        "restore",
        callback=restore,
        help="Write records of the Parquet TABLE to topics, in their partitions and order. A "
        "second run into a data directory writes nothing twice.",
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


def _diff() -> click.Command:
    return click.Command(
        "diff",
        callback=diff,
        help="Compare the Parquet TABLE of an archive with its log, where both have records. Exit "
        "status 1 when they differ.",
        params=[_TABLE, _PATH, _SERVERS, _TOPICS, _READ_COMMITTED, MASTER, JSON],
    )


def archive(
    table: str,
    *,
    commit_records: int,
    allow_loss: bool,
    read_committed: bool,
    master: str | None,
    as_json: bool,
    **where: Any,
) -> int:
    """Archive topics."""
    from embedlog.spark.jobs.archive import archive as job

    topics = _given(read_committed=read_committed, **where)
    with spark_session("archive", master) as spark, bar("offsets") as progress:
        report = job(
            spark,
            topics,
            table,
            commit_records=commit_records,
            allow_loss=allow_loss,
            progress=progress,
        )
    show(report, as_json)
    return 0


def restore(
    table: str,
    *,
    topics: tuple[str, ...],
    where: str,
    names: tuple[str, ...],
    master: str | None,
    as_json: bool,
    **target: Any,
) -> int:
    """Restore topics."""
    from embedlog.spark.jobs.restore import Selection
    from embedlog.spark.jobs.restore import restore as job

    pairs = [each.partition("=") for each in names]
    if not all(old and new for old, _, new in pairs):
        raise click.UsageError("--as: TOPIC=NAME is expected")
    given = {old: new for old, _, new in pairs}
    with spark_session("restore", master) as spark:
        report = job(spark, table, chosen=Selection(topics, where), names=given, **target)
    show(report, as_json)
    return 0


def diff(table: str, *, master: str | None, as_json: bool, **where: Any) -> int:
    """Compare an archive with its log."""
    from embedlog.spark.jobs.diff import diff as job

    topics = _given(**where)
    with spark_session("diff", master) as spark:
        report = job(spark, table, topics)
    show(report, as_json)
    return EXIT_FOUND if report.counts["differing"] else 0


def _given(
    *,
    topics: tuple[str, ...],
    path: str | None,
    bootstrap_servers: str | None,
    read_committed: bool = False,
) -> JobTopics:
    from embedlog.spark.jobs.topics import JobTopics

    options = {"kafka.isolation.level": "read_committed"} if read_committed else {}
    return JobTopics(topics, path, bootstrap_servers, options)
