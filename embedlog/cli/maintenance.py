"""`embedlog pipeline rewrite, scrub, profile, repartition, compact`: jobs on Spark.

Exit status: 0 success; 1 data is damaged, the directory's owner refused segments, or records to
erase are left; 2 the command failed.
"""

from __future__ import annotations

from typing import Any

import click

from embedlog.cli.jobs import EXIT_FOUND, JSON, MASTER, run_job

_PATH = click.Argument(["path"], metavar="DIRECTORY")
_TOPICS = click.Option(["--topic", "topics"], multiple=True, help="may come several times; "
                       "default: all but internal topics")  # fmt: skip


@click.command(
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
    path: str, topics: tuple[str, ...], *, keys: tuple[str, ...], keys_file: Any, **how: Any
) -> int:
    """Rewrite the closed segments of a data directory, at the same offsets: erase keys, keep the
    last record of each key, change the compression, join small batches.
    """
    erased = [each.encode() for each in keys]
    if keys_file is not None:
        erased += [line for line in keys_file.read().splitlines() if line]
    counts = run_job("rewrite", path, topics, keys=erased, shows="bytes", **how)
    return EXIT_FOUND if counts["refused"] or counts["damaged"] or counts["left"] else 0


@click.command(
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
def scrub(path: str, topics: tuple[str, ...], *, recheck_hours: float, **how: Any) -> int:
    """Check every file of a data directory, in parallel: every checksum, every rule. Nothing is
    changed. Exit status 1 if a file is damaged.
    """
    recheck_ms = int(recheck_hours * 3_600_000)
    counts = run_job("scrub", path, topics, recheck_ms=recheck_ms, shows="bytes", **how)
    return EXIT_FOUND if counts["findings"] else 0


@click.command(
    params=[
        _PATH,
        _TOPICS,
        click.Option(["--headers-only"], is_flag=True,
                     help="decode no records: no facts about keys and values"),
        MASTER,
        JSON,
    ],
)  # fmt: skip
def profile(path: str, topics: tuple[str, ...], **how: Any) -> None:
    """Describe topics: counts, sizes, rates, keys, skew, disorder of timestamps."""
    run_job("profile", path, topics, **how)


@click.command(
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
    **how: Any,
) -> None:
    """Copy topic SOURCE to TARGET with PARTITIONS partitions, exactly once. Kafka's default
    partitioner chooses the partitions, and the records of each key keep their order.
    """
    config, given = _pairs(settings), _pairs(options)
    run_job("repartition", path, source, target, partitions, config=config, options=given, **how)


@click.command(
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
def compact(path: str, target_mb: int, **how: Any) -> None:
    """Pack the small files of a pipeline's table into large ones, in one commit."""
    run_job("compact", path, target_bytes=target_mb << 20, shows="bytes", **how)


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    for text in texts:
        if not text.partition("=")[1]:
            raise click.UsageError(f"{text!r}: expected NAME=VALUE")
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}
