"""What a rewriting job hands over: files of one partition, each for a segment.

    {"kind": "replace", "id": 32 hex digits, "topic", "partition", "topic_id": hex or "",
     "roll": bool,
     "files": [{"path", "size", "base_offset", "former_size", "fingerprint"}, ...]}

`roll` begins a new segment, so that what is written can be rewritten; it comes without files.
"""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.storage.state_files.staged_manifest import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

KIND = "replace"


class ReplacingFile:
    """A staged file for the segment at `base_offset`, which had `former_size` bytes when read.

    `path` is relative to the staging area, `fingerprint` that of the segment's batches.
    """

    __slots__ = ("base_offset", "fingerprint", "former_size", "path", "size")

    def __init__(
        self, path: str, *, size: int, base_offset: int, former_size: int, fingerprint: str
    ) -> None:
        self.path = path
        self.size = size
        self.base_offset = base_offset
        self.former_size = former_size
        self.fingerprint = fingerprint

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> ReplacingFile:
        """The other way.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        path = found["path"]
        if type(path) is not str or path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"path {path!r} leaves the staging area")
        size, former_size = int(found["size"]), int(found["former_size"])
        base_offset = int(found["base_offset"])
        if size <= 0 or former_size <= 0 or base_offset < 0:
            raise ValueError(f"{path}: size {size} for {former_size} at offset {base_offset}")
        return cls(
            path,
            size=size,
            base_offset=base_offset,
            former_size=former_size,
            fingerprint=str(found["fingerprint"]),
        )

    def __repr__(self) -> str:
        return f"ReplacingFile({self.path}, for {self.base_offset})"


class Replacement:
    """Files for segments of one partition. Immutable by convention.

    `topic_id` is hex, "" where none is known.
    """

    __slots__ = ("files", "id", "is_roll", "topic_id", "topic_partition")

    def __init__(
        self,
        id: str,
        topic_partition: TopicPartition,
        files: Iterable[ReplacingFile] = (),
        *,
        topic_id: str = "",
        is_roll: bool = False,
    ) -> None:
        self.id = id
        self.topic_partition = topic_partition
        self.files = tuple(sorted(files, key=lambda file: file.base_offset))
        self.topic_id = topic_id
        self.is_roll = is_roll

    def encode(self) -> bytes:
        """The content of a manifest's file."""
        from json import dumps

        topic, partition = self.topic_partition
        return dumps(
            {
                "kind": KIND,
                "id": self.id,
                "topic": topic,
                "partition": partition,
                "topic_id": self.topic_id,
                "roll": self.is_roll,
                "files": [file.to_json() for file in self.files],
            }
        ).encode()

    def __repr__(self) -> str:
        return f"<Replacement of {len(self.files)} segments of {self.topic_partition}>"


def decode(content: bytes, path: str) -> Manifest | Replacement:
    """Read a manifest of either kind.

    Raises:
        CorruptRecord: it is none.
    """
    from json import loads

    try:
        found = loads(content)
        if found.get("kind") != KIND:
            return Manifest.decode(content, path)
        files = [ReplacingFile.from_json(each) for each in found["files"]]
        bases = [file.base_offset for file in files]
        if len(set(bases)) != len(bases) or bool(files) == bool(found["roll"]):
            raise ValueError(f"roll {found['roll']}, and files for the segments at {bases}")
        return Replacement(
            str(found["id"]),
            TopicPartition(str(found["topic"]), int(found["partition"])),
            files,
            topic_id=str(found["topic_id"]),
            is_roll=bool(found["roll"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptRecord(path, 0, f"no manifest: {error!r}") from None
