"""The common part of both compactions: small files are packed into large ones, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from embedlog.runtime import real_runtime
from embedlog.spark.jobs.report import Report
from embedlog.spark.jobs.tasks import run_tasks
from embedlog.spark.pipeline.errors import TableConflict
from embedlog.spark.pipeline.tables.manifest import ONE_TIME
from embedlog.spark.pipeline.tables.one_time import at_work
from embedlog.spark.pipeline.tables.stage import close_stage, open_stage
from embedlog.spark.pipeline.tables.table import CommitKey, DataFile, TableFormat


@dataclass(frozen=True)
class Pack:
    """Files that become one file at `path`."""

    sources: tuple[DataFile, ...]
    path: str


P = TypeVar("P", bound=Pack)


def new_key() -> CommitKey:
    """Return the key of a compaction's commit."""
    return CommitKey(f"{ONE_TIME}compact-{real_runtime().random.uuid().hex()}", 0)


def filled(files: Sequence[DataFile], target_bytes: int) -> Iterator[list[DataFile]]:
    """Yield groups of at least two neighbouring files, each of about `target_bytes`."""
    some: list[DataFile] = []
    size = 0
    for file in files:
        if size + file.size_bytes > target_bytes:
            if len(some) > 1:
                yield some
            some, size = [], 0
        some.append(file)
        size += file.size_bytes
    if len(some) > 1:
        yield some


def pack_files(
    spark: SparkSession,
    table: TableFormat,
    key: CommitKey,
    packs: Sequence[P],
    copy: Callable[[str, P], Mapping[str, Any]],
    *,
    progress: Callable[[int, int], None],
    check: Callable[[], None] = lambda: None,
) -> Report:
    """Make the file of each pack in a task, and commit all of them at once.

    `copy(stage, pack)` returns "path", "rows" and "bytes" of a durable file, or a "conflict".
    `check` runs right before the commit. `progress` gets bytes: done, total.

    Raises:
        TableConflict: another commit came in between.
    """
    removes = [file for pack in packs for file in pack.sources]
    total, done = sum(file.size_bytes for file in removes), 0
    adds: list[DataFile] = []
    winners: dict[str, str] = {}
    with at_work([table], key.app):
        stage = open_stage(table.path, key.directory)
        for slot, found in run_tasks(spark, partial(copy, stage), packs):
            if "conflict" in found:
                raise TableConflict(f"{table.path}: {found['conflict']}")
            pack = packs[slot]
            first, winners[found["path"]] = pack.sources[0], pack.path
            adds.append(
                DataFile(pack.path, found["rows"], found["bytes"], first.part, first.partition)
            )
            done += sum(file.size_bytes for file in pack.sources)
            progress(done, total)
        close_stage(stage, winners)
        wanted, have = (sum(file.row_count for file in some) for some in (removes, adds))
        assert have == wanted, (have, wanted)
        if packs:
            check()
            table.commit(key, adds, removes)
    counts = {
        "packed": len(removes),
        "rows": wanted,
        "bytes_before": total,
        "bytes_after": sum(file.size_bytes for file in adds),
    }
    return Report("compact", counts, tuple({"file": file.path} for file in adds))
