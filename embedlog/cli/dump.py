"""`embedlog dump`: show files line by line, in the manner of Kafka's dump tool."""

from __future__ import annotations

import json

from embedlog.cli import internal_topics
from embedlog.cli.directory import data_directory, is_chosen
from embedlog.cli.exit_status import EXIT_DAMAGED
from embedlog.cli.text import fields_of, line_of
from embedlog.errors import ConfigError, CorruptRecord
from embedlog.runtime import real_runtime
from embedlog.storage import paths
from embedlog.storage.verification.inspection import batches, damage, directory_files, log_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files
    from embedlog.storage.foreign.segment import Batch
    from embedlog.storage.verification.inspection import Item


def run(
    path: str,
    *,
    topic: str | None,
    partition: int | None,
    offset: int,
    records: bool,
    files: bool,
    as_json: bool,
) -> int:
    """Print the chosen files; return the exit status."""
    system = real_runtime().files
    directory = data_directory(system, path)
    holds = is_chosen(topic, partition)
    found = map(paths.parse_log_directory, system.list(directory))
    chosen = sorted(each for each in found if each is not None and holds(each))
    if not chosen and topic is not None:
        raise ConfigError(f"{directory}: no such topic or partition")
    is_damaged = False
    for item in _items(
        system, directory, chosen, offset=offset, has_records=records, has_files=files
    ):
        is_damaged = is_damaged or item["kind"] == "damage"
        print(json.dumps(item) if as_json else _line(item))
    return EXIT_DAMAGED if is_damaged else 0


def _items(
    files: Files,
    directory: str,
    chosen: list[TopicPartition],
    *,
    offset: int,
    has_records: bool,
    has_files: bool,
) -> Iterator[Item]:
    if has_files:
        yield from directory_files(files, directory)
    for which in chosen:
        log = paths.log_directory(directory, which)
        for item, batch in batches(files, log, offset):
            yield item
            if has_records and batch is not None:
                yield from _records(which, log, batch, offset)
        if has_files:
            yield from log_files(files, log)


def _records(which: TopicPartition, log: str, batch: Batch, offset: int) -> Iterator[Item]:
    try:
        for record in batch.records():
            if record.offset < offset:
                continue
            item: Item = {"kind": "record", **fields_of(record)}
            if which.topic in internal_topics.INTERNAL and not getattr(batch, "is_control", False):
                item["decoded"] = repr(internal_topics.decode(which.topic, record))
            yield item
    except ValueError as error:
        yield damage(CorruptRecord(log, 0, f"batch at offset {batch.base_offset}: {error}"))


def _line(item: Item) -> str:
    kind = "|" if item["kind"] == "record" else item["kind"]
    return f"{kind} {line_of({k: v for k, v in item.items() if k != 'kind'})}"
