"""`embedlog pipeline rewrite, scrub, profile, repartition, compact`: jobs on Spark.

Exit status: 0 success; 1 data is damaged, or the owner refused a part, or work is left; 2 the
command failed.
"""

from __future__ import annotations

import click

from embedlog.cli.jobs import EXIT_FOUND, JSON, MASTER, show, spark_session
from embedlog.cli.progress import bar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PATH = click.Argument(["path"], metavar="DIRECTORY")
_TOPICS = click.Option(["--topic", "topics"], multiple=True, help="may come several times; "
                       "default: all but internal topics")  # fmt: skip


def commands() -> list[click.Command]:
    """Return the verbs."""
    return [_rewrite(), _scrub(), _profile(), _repartition(), _compact()]


def _rewrite() -> click.Command:
    return click.Command(
        "rewrite",
        callback=rewrite,
        help="Rewrite the closed segments of a data directory, at the same offsets: erase keys, "
        "keep the last record of each key, change the compression, join small batches.",
        params=[
            _PATH,
            _TOPICS,
            click.Option(["--key", "keys"], multiple=True, help="erase the records of this key"),
            click.Option(["--keys-file"], type=click.File("rb"), help="keys to erase, one a line"),
            click.Option(["--last-of-key", "compact"], is_flag=True,
                         help="keep the last record of each key"),
            click.Option(["--compression"], help="none, gzip, snappy, lz4 or zstd"),
            click.Option(["--level"], type=int, help="level of the compression"),
            click.Option(["--batch-size"], type=click.IntRange(min=0), default=0,
                         help="join smaller batches to batches of this many bytes"),
            click.Option(["--roll"], is_flag=True, help="begin a new segment first, so that all "
                         "present records are rewritten"),
            MASTER,
            JSON,
        ],
    )  # fmt: skip


def rewrite(
    path: str,
    topics: tuple[str, ...],
    *,
    keys: tuple[str, ...],
    keys_file: Any,
    master: str | None,
    as_json: bool,
    **rules: Any,
) -> int:
    """Rewrite segments."""
    from embedlog.spark.jobs.rewrite import rewrite as job

    erased = [each.encode() for each in keys]
    if keys_file is not None:
        erased += [line for line in keys_file.read().splitlines() if line]
    with spark_session("rewrite", master) as spark, bar("rewrite", of_bytes=True) as progress:
        report = job(spark, path, topics, keys=erased, progress=progress, **rules)
    show(report, as_json)
    counts = report.counts
    return EXIT_FOUND if counts["refused"] or counts["damaged"] or counts["left"] else 0


def _scrub() -> click.Command:
    return click.Command(
        "scrub",
        callback=scrub,
        help="Check every file of a data directory, in parallel: every checksum, every rule. "
        "Nothing is changed. Exit status 1 if a file is damaged.",
        params=[
            _PATH,
            _TOPICS,
            click.Option(["--state"], help="a file that remembers sound segments, to skip them for "
                         "a while"),
            click.Option(["--recheck-hours"], type=click.FloatRange(min=0), default=168.0,
                         show_default=True, help="read sound segments again after this time"),
            MASTER,
            JSON,
        ],
    )  # fmt: skip


def scrub(
    path: str,
    topics: tuple[str, ...],
    *,
    state: str | None,
    recheck_hours: float,
    master: str | None,
    as_json: bool,
) -> int:
    """Verify in parallel."""
    from embedlog.spark.jobs.scrub import scrub as job

    recheck_ms = int(recheck_hours * 3_600_000)
    with spark_session("scrub", master) as spark, bar("scrub", of_bytes=True) as progress:
        report = job(spark, path, topics, state=state, recheck_ms=recheck_ms, progress=progress)
    show(report, as_json)
    return EXIT_FOUND if report.counts["findings"] else 0


def _profile() -> click.Command:
    return click.Command(
        "profile",
        callback=profile,
        help="Describe topics: counts, sizes, rates, keys, skew, disorder of timestamps.",
        params=[
            _PATH,
            _TOPICS,
            click.Option(["--headers-only"], is_flag=True,
                         help="decode no records: no facts about keys and values"),
            MASTER,
            JSON,
        ],
    )  # fmt: skip


def profile(
    path: str, topics: tuple[str, ...], headers_only: bool, master: str | None, as_json: bool
) -> int:
    """Describe topics."""
    from embedlog.spark.jobs.profile import profile as job

    with spark_session("profile", master) as spark:
        report = job(spark, path, topics, headers_only=headers_only)
    show(report, as_json)
    return 0


def _repartition() -> click.Command:
    return click.Command(
        "repartition",
        callback=repartition,
        help="Copy topic SOURCE to TARGET with PARTITIONS partitions, exactly once. Keys go where "
        "Kafka's default partitioner sends them, and keep their order.",
        params=[
            _PATH,
            click.Argument(["source"]),
            click.Argument(["target"]),
            click.Argument(["partitions"], type=click.IntRange(min=1)),
            click.Option(["--key"], help="SQL over the columns of a record: the new key"),
            click.Option(["--where"], help="SQL: copy only these records"),
            click.Option(["--version"], type=click.IntRange(min=0), default=1, show_default=True,
                         help="version of the copy; a version is written once"),
            click.Option(["--config", "settings"], multiple=True, metavar="NAME=VALUE",
                         help="setting of a new TARGET, such as retention.ms=604800000; by "
                         "default it keeps records for ever"),
            click.Option(["--option", "options"], multiple=True, metavar="NAME=VALUE",
                         help="of format(\"embedlog\"), such as kafka.bootstrap.servers=..."),
            MASTER,
            JSON,
        ],
    )  # fmt: skip


def repartition(
    path: str,
    source: str,
    target: str,
    partitions: int,
    *,
    settings: tuple[str, ...],
    options: tuple[str, ...],
    master: str | None,
    as_json: bool,
    **which: Any,
) -> int:
    """Write a topic with another number of partitions."""
    from embedlog.spark.jobs.repartition import repartition as job

    config, given = _pairs(settings), _pairs(options)
    with spark_session("repartition", master) as spark:
        report = job(spark, path, source, target, partitions, config=config, options=given, **which)
    show(report, as_json)
    return 0


def _compact() -> click.Command:
    return click.Command(
        "compact",
        callback=compact,
        help="Pack the small files of a pipeline's table into large ones, in one commit.",
        params=[
            click.Argument(["path"], metavar="TABLE"),
            click.Option(["--target-mb"], type=click.IntRange(min=1), default=256,
                         show_default=True, help="size of a new file; files of half of it stay"),
            click.Option(["--format"], type=click.Choice(["parquet", "delta", "iceberg"]),
                         default="parquet", show_default=True),
            MASTER,
            JSON,
        ],
    )  # fmt: skip


def compact(path: str, target_mb: int, format: str, master: str | None, as_json: bool) -> int:
    """Pack files."""
    from embedlog.spark.jobs.compact import compact as job

    with spark_session("compact", master) as spark, bar("compact", of_bytes=True) as progress:
        report = job(spark, path, target_bytes=target_mb << 20, format=format, progress=progress)
    show(report, as_json)
    return 0


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """Return NAME=VALUE texts as a dict."""
    for text in texts:
        if not text.partition("=")[1]:
            raise click.UsageError(f"{text!r}: expected NAME=VALUE")
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}
