"""How both compactions choose the files to pack together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embedlog.spark.pipeline.tables.table import DataFile


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
