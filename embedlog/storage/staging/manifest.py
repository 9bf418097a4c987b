"""Manifests: the committer's requests to the owner of a data directory, as JSON in a sealed file.

The manifest of a commit names files of new records. The records of a partition's files get offsets
in the order of the list:

    {"id": 32 hex digits, "application": text, "version": int,
     "files": [{"topic", "partition", "path", "size", "count"}, ...]}

The manifest of a replacement names rewritten files, each for one closed segment of a partition:

    {"kind": "replace", "id": 32 hex digits, "topic", "partition", "topic_id": hex or "",
     "roll": bool,
     "files": [{"path", "size", "base_offset", "former_size", "fingerprint"}, ...]}

With `roll` it has no files: the owner closes the last segment and begins a new one, so that a later
replacement can rewrite the closed one. Paths are relative to the staging area; sizes are in bytes,
counts in records.

A backup asks for the start and the high watermark of every log at one moment:

    {"kind": "ends", "id": 32 hex digits}
"""

from __future__ import annotations

from embedlog.common import TopicPartition, Value
from embedlog.errors import CorruptRecord
from embedlog.storage.state_files.foreign_document import decode_document, number, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_REPLACE = "replace"
_ENDS = "ends"
_PARTS_MIN = 2
"""A staged file lies in the directory of its job."""
_VERSION_MIN = -(1 << 63)


class StagedFile(Value):
    """A file of `count` records for one partition. The offsets in it begin at 0."""

    topic_partition: TopicPartition
    path: str
    size: int
    count: int


class Manifest(Value):
    """The files of one commit.

    If `application` is set, the owner commits each `version` of it at most once. If it is empty,
    the version is ignored.
    """

    id: str
    files: Sequence[StagedFile]
    application: str = ""
    version: int = 0

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted({file.topic_partition for file in self.files})

    def encode(self) -> bytes:
        files = [
            {
                "topic": file.topic_partition.topic,
                "partition": file.topic_partition.partition,
                "path": file.path,
                "size": file.size,
                "count": file.count,
            }
            for file in self.files
        ]
        return _encode({**self.__dict__, "files": files})


class ReplacingFile(Value):
    """A rewritten file that shall replace the segment at `base_offset`.

    The segment had `former_size` bytes when it was read. `fingerprint` identifies the batches that
    were read: see `SegmentFacts`.
    """

    path: str
    size: int
    base_offset: int
    former_size: int
    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        """Return a dictionary for JSON, in manifests and in results of Spark's tasks."""
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> ReplacingFile:
        """Read the result of `to_json`, or raise KeyError, TypeError or ValueError."""
        return cls(
            _path(found),
            size=number(found["size"], 1),
            base_offset=number(found["base_offset"]),
            former_size=number(found["former_size"], 1),
            fingerprint=text(found["fingerprint"]),
        )


class Replacement(Value):
    """A request to replace segments of one partition, or with `is_roll` to begin a new segment.

    `topic_id` is hex, "" if it is unknown.
    """

    id: str
    topic_partition: TopicPartition
    files: Sequence[ReplacingFile] = ()
    topic_id: str = ""
    is_roll: bool = False

    def encode(self) -> bytes:
        topic, partition = self.topic_partition
        return _encode(
            {
                "kind": _REPLACE,
                "id": self.id,
                "topic": topic,
                "partition": partition,
                "topic_id": self.topic_id,
                "roll": self.is_roll,
                "files": [file.to_json() for file in self.files],
            }
        )


class EndsRequest(Value):
    """A question for the offsets of all logs at one moment, for a backup."""

    id: str

    @property
    def files(self) -> Sequence[StagedFile]:
        return ()

    def encode(self) -> bytes:
        return _encode({"kind": _ENDS, "id": self.id})


def decode(content: bytes, path: str) -> Manifest | Replacement | EndsRequest:
    """Decode a manifest of any kind; `path` is for error messages.

    Raises:
        CorruptRecord: the content is no manifest.
    """
    try:
        found = decode_document(content, path)
    except CorruptRecord as error:
        raise CorruptRecord(path, 0, f"no manifest: {error.reason}") from None
    try:
        if found.get("kind") == _REPLACE:
            return _replacement(found)
        if found.get("kind") == _ENDS:
            return EndsRequest(text(found["id"]))
        return Manifest(
            text(found["id"]),
            [_staged_file(each) for each in found["files"]],
            application=text(found["application"]),
            version=number(found["version"], _VERSION_MIN),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptRecord(path, 0, f"no manifest: {error!r}") from None


def _encode(fields: dict[str, Any]) -> bytes:
    from json import dumps

    return dumps(fields).encode()


def _staged_file(found: dict[str, Any]) -> StagedFile:
    return StagedFile(
        _partition(found),
        _path(found),
        size=number(found["size"], 1),
        count=number(found["count"], 1),
    )


def _partition(found: dict[str, Any]) -> TopicPartition:
    return TopicPartition(text(found["topic"]), number(found["partition"]))


def _replacement(found: dict[str, Any]) -> Replacement:
    files = [ReplacingFile.from_json(each) for each in found["files"]]
    bases = [file.base_offset for file in files]
    if len(set(bases)) != len(bases) or bool(files) == bool(found["roll"]):
        raise ValueError(f"roll {found['roll']}, and files for the segments at {bases}")
    return Replacement(
        text(found["id"]),
        _partition(found),
        files,
        topic_id=text(found["topic_id"]),
        is_roll=bool(found["roll"]),
    )


def _path(found: dict[str, Any]) -> str:
    """Return the path of a file in a job's directory; ValueError if it may leave the directory."""
    path = text(found["path"])
    parts = path.split("/")
    if len(parts) < _PARTS_MIN or "\0" in path or not {"", ".", ".."}.isdisjoint(parts):
        raise ValueError(f"path {path!r} leaves the staging area, or is no file of a job")
    return path
