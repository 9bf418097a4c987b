"""What a committer hands over: the files of a commit, in their order.

A manifest is JSON in a sealed file:

    {"id": 32 hex digits, "application": text, "version": int,
     "files": [{"topic", "partition", "path", "size", "count"}, ...]}

Within a partition the order of the files is that of the records.
"""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class StagedFile:
    """A file of batches for one partition, whose offsets begin at 0.

    `path` is relative to the staging area, `size` in bytes, `count` in records.
    """

    __slots__ = ("count", "path", "size", "topic_partition")

    def __init__(self, topic_partition: TopicPartition, path: str, *, size: int, count: int):
        self.topic_partition = topic_partition
        self.path = path
        self.size = size
        self.count = count

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        topic, partition = self.topic_partition
        return {
            "topic": topic,
            "partition": partition,
            "path": self.path,
            "size": self.size,
            "count": self.count,
        }

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> StagedFile:
        """The other way.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        path = found["path"]
        if type(path) is not str or path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"path {path!r} leaves the staging area")
        size, count = int(found["size"]), int(found["count"])
        if size <= 0 or count <= 0:
            raise ValueError(f"{path}: size {size}, count {count}")
        topic_partition = TopicPartition(str(found["topic"]), int(found["partition"]))
        return cls(topic_partition, path, size=size, count=count)

    def __repr__(self) -> str:
        return f"StagedFile({self.topic_partition}, {self.path}, {self.count} records)"


class Manifest:
    """The files of one commit. Immutable by convention.

    `application` "" is one that will not ask again: its commits have no version to remember.
    """

    __slots__ = ("application", "files", "id", "version")

    def __init__(
        self, id: str, files: Iterable[StagedFile], *, application: str = "", version: int = 0
    ) -> None:
        self.id = id
        self.application = application
        self.version = version
        self.files = tuple(files)

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that it has files for, sorted."""
        return sorted({file.topic_partition for file in self.files})

    def encode(self) -> bytes:
        """The content of a manifest's file."""
        from json import dumps

        return dumps(
            {
                "id": self.id,
                "application": self.application,
                "version": self.version,
                "files": [file.to_json() for file in self.files],
            }
        ).encode()

    @classmethod
    def decode(cls, content: bytes, path: str) -> Manifest:
        """Read a manifest.

        Raises:
            CorruptRecord: it is none.
        """
        from json import loads

        try:
            found = loads(content)
            return cls(
                str(found["id"]),
                [StagedFile.from_json(each) for each in found["files"]],
                application=str(found["application"]),
                version=int(found["version"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptRecord(path, 0, f"no manifest: {error!r}") from None

    def __repr__(self) -> str:
        name = f"{self.application} version {self.version}" if self.application else self.id
        return f"<Manifest of {name}, {len(self.files)} files>"
