"""Writing staged files: finished batches for one partition, with offsets from 0.

    .exchange/staged/<job>/<topic>-<partition>-<writer>-<n>

`topic` is cut to 100 characters. `job` names one attempt at one commit: its directory is removed
when the commit is done or given up. `writer` must be unique within the job: if a task runs twice,
its runs use two names.
"""

from __future__ import annotations

from embedlog.runtime.files import File, Files, write_fully
from embedlog.storage.staging.manifest import StagedFile
from embedlog.storage.state_files import staged_layout
from wire.records.format import HEADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import Buffer, TopicPartition

SIZE_MAX = 256 << 20
"""A writer begins another file at this size, because each file may become one segment."""

_TOPIC_SHOWN_MAX = 100
"""A topic's name is cut to this many characters: a file name has 255 at most."""


class StagedWriter:
    """Writes the batches of one partition to one or more staged files. For one thread."""

    def __init__(
        self,
        files: Files,
        data: str,
        *,
        job: str,
        topic_partition: TopicPartition,
        writer: str,
        size_max: int = SIZE_MAX,
    ) -> None:
        """The files will be in the directory of `job`. The first batch creates the first file."""
        self._files = files
        self._directory = f"{staged_layout.part(data, staged_layout.STAGED)}/{job}"
        self._job = job
        self._topic_partition = topic_partition
        topic, partition = topic_partition
        self._name = f"{topic[:_TOPIC_SHOWN_MAX]}-{partition}-{writer}"
        self._size_max = size_max
        self._file: File | None = None
        self._size = self._count = 0
        self._finished: list[StagedFile] = []

    def write(self, batch: Buffer) -> None:
        """Write a batch of magic 2 after the others, with the next offset. `batch` is only read."""
        view = memoryview(batch)
        header = HEADER.unpack_from(view)
        if self._file is not None and self._size + len(view) > self._size_max:
            self._end_file()
        if self._file is None:
            files, path = self._files, self._path
            self._file = staged_layout.inside(
                files, self._directory, lambda: files.open(path, create=True)
            )
        write_fully(self._file.write, (self._count.to_bytes(8, "big"), view[8:]), self._size)
        self._size += len(view)
        self._count += header[12]

    def finish(self) -> list[StagedFile]:
        """Sync the files; return them in order."""
        if self._file is not None:
            self._end_file()
        if self._finished:
            self._files.sync_directory(self._directory)
        return self._finished

    @property
    def _path(self) -> str:
        return f"{self._directory}/{self._name}-{len(self._finished)}"

    def _end_file(self) -> None:
        assert self._file is not None
        self._file.sync()
        self._file.close()
        path = f"{self._job}/{self._name}-{len(self._finished)}"
        self._finished.append(
            StagedFile(self._topic_partition, path, size=self._size, count=self._count)
        )
        self._file = None
        self._size = self._count = 0
