"""What compactions share: which files go together, and the end of one that was written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from embedlog.runtime.files import parent

if TYPE_CHECKING:
    from embedlog.runtime.files import Files
    from embedlog.spark.pipeline.sinks.table import DataFile


def filled(files: Sequence[DataFile], target_bytes: int) -> Iterator[list[DataFile]]:
    """Neighbours of about so many bytes together, two at least."""
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


def make_durable(files: Files, path: str) -> int:
    """Sync a file that was written, and its name; returns its bytes."""
    file = files.open(path)
    file.sync()
    size = file.size()
    file.close()
    files.sync_directory(parent(path))
    return size
