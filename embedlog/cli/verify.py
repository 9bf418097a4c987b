"""`embedlog verify`: find damage in a data directory; change nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from embedlog.cli import internal_topics
from embedlog.cli.directory import data_directory, is_chosen, other_directories
from embedlog.cli.exit_status import EXIT_DAMAGED
from embedlog.cli.progress import bar
from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord, EmbedlogError
from embedlog.runtime import real_runtime
from embedlog.runtime.files import Files
from embedlog.storage.foreign.log import ForeignLog
from embedlog.storage.verification.directory import DirectoryCheck
from embedlog.storage.verification.inspection import damage

_MB = 1_000_000


def run(path: str, topic: str | None, partition: int | None, *, as_json: bool) -> int:
    """Print a line for each damage and a summary; return the exit status."""
    runtime = real_runtime()
    files = runtime.files
    directory = data_directory(files, path)
    chosen = is_chosen(topic, partition)
    started_ms = runtime.clock.monotonic_ms()
    count = 0
    sizing = DirectoryCheck(files, directory, lambda size: None, chosen)
    total = sizing.size()
    done = 0
    with bar("verify", of_bytes=True) as show:

        def advance(size: int) -> None:
            nonlocal done
            done += size
            show(done, total)

        verification = DirectoryCheck(files, directory, advance, chosen)
        for finding in verification.findings():
            _tell(finding, as_json)
            count += 1
        if not count:
            for finding in _internal(files, directory, verification):
                _tell(finding, as_json)
                count += 1
    seconds = max(1, runtime.clock.monotonic_ms() - started_ms) / 1000
    summary = {
        "kind": "summary",
        "directory": directory,
        "damaged": count,
        "partitions": len(verification.ends),
        "batches": verification.batch_count,
        "bytes": total,
        "unfinished_bytes": verification.torn_size,
        "seconds": seconds,
        "other_directories": other_directories(files, directory),
    }
    if as_json:
        print(json.dumps(summary))
    else:
        _tell_summary(summary)
    return EXIT_DAMAGED if count else 0


def _tell_summary(found: dict[str, Any]) -> None:
    directory, count, torn = found["directory"], found["damaged"], found["unfinished_bytes"]
    size, others = found["bytes"] / _MB, found["other_directories"]
    print(
        f"{directory}: {f'{count} damaged' if count else 'sound'}: {found['partitions']} "
        f"partitions, {found['batches']} batches, {size:.1f} MB"
        f"{f', {torn} bytes of unfinished batches' if torn else ''} "
        f"({size / found['seconds']:.0f} MB/s)"
    )
    if others:
        print(f"{directory} is one of several log directories, beside {', '.join(others)}")


def _tell(finding: CorruptRecord, as_json: bool) -> None:
    print(json.dumps(damage(finding)) if as_json else finding, file=sys.stdout, flush=True)


def _internal(
    files: Files, directory: str, verification: DirectoryCheck
) -> Iterator[CorruptRecord]:
    """Yield the undecodable records of internal topics, in sound files."""
    for topic_partition in sorted(verification.ends):
        if topic_partition.topic in internal_topics.INTERNAL:
            yield from _decode(files, directory, topic_partition)


def _decode(files: Files, directory: str, which: TopicPartition) -> Iterator[CorruptRecord]:
    where = f"{directory}/{which}"
    try:
        log = ForeignLog(files, directory, which)
        for batch in log.batches(log.log_start_offset, log.high_watermark):
            if getattr(batch, "is_control", False):
                continue
            for record in batch.records():
                try:
                    internal_topics.decode(which.topic, record)
                except ValueError as error:
                    yield CorruptRecord(where, 0, f"record at offset {record.offset}: {error}")
    except CorruptRecord as error:
        yield error
    except (EmbedlogError, ValueError) as error:
        yield CorruptRecord(where, 0, str(error))
