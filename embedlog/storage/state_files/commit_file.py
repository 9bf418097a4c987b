"""The record of the last commit of staged files, and of each application's last version.

A sealed file of two lines of JSON:

    {"sequence", "id", "application", "version", "state", "pieces": [...]}
    {application: [version, sequence], ...}

    state      readers in other processes        after a crash
    prepared   stop before the commit's pieces   the commit is completed or undone
    done       see all pieces                    nothing to do
    undone     see no piece                      nothing to do

`prepare` writes the two possible next contents to the files `.done` and `.undone` beside this one
and syncs them, before it writes `prepared` to this one. So the decision is a rename, which needs no
room on the disk. If this file is damaged, the two beside it show its content.

`sequence` grows with every prepare, so a reader that reads the file twice notices a commit in
between.
"""

from __future__ import annotations

from functools import lru_cache

from embedlog.common import TopicPartition, Value
from embedlog.errors import CorruptRecord
from embedlog.storage.state_files import staged_layout
from embedlog.storage.state_files.sealed_file import read_sealed, write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from embedlog.runtime.files import Files

PREPARED, DONE, UNDONE = "prepared", "done", "undone"

APPLICATIONS_MAX = 1_000
"""At most this many applications are remembered, the newest: every reader reads the whole file."""


class Piece(Value):
    """A staged file and the offsets that its records get.

    With `is_renamed` the file becomes a segment; without it, its batches are appended. `path` is
    relative to the staging area.
    """

    topic_partition: TopicPartition
    path: str
    base_offset: int
    count: int
    is_renamed: bool
    topic_id: str

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.count

    def _to_json(self) -> list[Any]:
        topic, partition = self.topic_partition
        return [
            topic,
            partition,
            self.topic_id,
            self.path,
            self.base_offset,
            self.count,
            self.is_renamed,
        ]


class Commit:
    """The record of one commit. Only its `state` ever changes."""

    def __init__(
        self,
        *,
        sequence: int,
        id: str,
        application: str,
        version: int,
        state: str,
        pieces: Iterable[Piece],
    ) -> None:
        self.sequence = sequence
        self.id = id
        self.application = application
        self.version = version
        self.state = state
        self.pieces = tuple(pieces)

    @property
    def starts(self) -> dict[TopicPartition, int]:
        """Partition -> the first offset that the commit fills."""
        found: dict[TopicPartition, int] = {}
        for piece in self.pieces:
            found.setdefault(piece.topic_partition, piece.base_offset)
        return found

    @property
    def ranges(self) -> dict[TopicPartition, tuple[int, int]]:
        """Partition -> (first, end) of the offsets that the commit fills; the end is exclusive."""
        found: dict[TopicPartition, tuple[int, int]] = {}
        for piece in self.pieces:
            start, _ = found.get(piece.topic_partition, (piece.base_offset, 0))
            found[piece.topic_partition] = start, piece.end_offset
        return found

    def encode(self, state: str, versions: Mapping[str, list[int]]) -> bytes:
        from json import dumps

        record = {
            "sequence": self.sequence,
            "id": self.id,
            "application": self.application,
            "version": self.version,
            "state": state,
            "pieces": [piece._to_json() for piece in self.pieces],
        }
        return f"{dumps(record)}\n{dumps(versions)}".encode()

    @classmethod
    def decode(cls, line: bytes) -> Commit:
        """Read the record in the file's first `line`; KeyError, TypeError or ValueError if bad."""
        from json import loads

        found = loads(line)
        pieces = [
            Piece(TopicPartition(topic, partition), path, base, count, is_renamed, topic_id)
            for topic, partition, topic_id, path, base, count, is_renamed in found["pieces"]
        ]
        return cls(
            sequence=found["sequence"],
            id=found["id"],
            application=found["application"],
            version=found["version"],
            state=found["state"],
            pieces=pieces,
        )

    def __repr__(self) -> str:
        name = f"{self.application} version {self.version}" if self.application else self.id
        return f"<Commit {self.sequence} of {name}, {self.state}>"


class CommitFile:
    """The commit file of a data directory, for the process that owns it. One thread at a time."""

    def __init__(self, files: Files, data: str) -> None:
        """Read the file.

        Raises:
            CorruptRecord: the file and the two beside it are damaged: the commits are unknown.
        """
        self._files = files
        self._path = staged_layout.commit_file(data)
        self.last: Commit | None = None
        self.versions: dict[str, list[int]] = {}
        """Application -> its last version, and the sequence of that commit."""
        found = _read(files, self._path)
        if found is not None:
            self.last, self.versions = found

    def is_done(self, application: str, version: int) -> bool:
        known = self.versions.get(application)
        return bool(application) and known is not None and known[0] >= version

    def prepare(
        self, pieces: Iterable[Piece], *, id: str, application: str, version: int
    ) -> Commit:
        """Record the pieces to be placed; on return the record survives a loss of power.

        Raises:
            OSError: the disk refuses. If `last` is the new commit afterwards, its record may be in
                the file, and the caller must call `decide`. If not, the file is unchanged.
        """
        sequence = self.last.sequence + 1 if self.last is not None else 1
        commit = Commit(
            sequence=sequence,
            id=id,
            application=application,
            version=version,
            state=PREPARED,
            pieces=pieces,
        )
        versions = self._versions_with(commit)
        for state, known in ((DONE, versions), (UNDONE, self.versions)):
            content = commit.encode(state, known)
            write_sealed(self._files, f"{self._path}.{state}", content, sync=True)
        self.last = commit
        write_sealed(self._files, self._path, commit.encode(PREPARED, self.versions), sync=True)
        return commit

    def decide(self, commit: Commit, state: str) -> None:
        """Decide the prepared commit: `state` is DONE or UNDONE. All readers see it at once.

        Raises:
            OSError: the disk refuses; the commit may be decided or not.
        """
        assert commit.state == PREPARED, commit.state
        self._files.rename(f"{self._path}.{state}", self._path)
        self._files.sync_directory(self._path.rpartition("/")[0])
        if state == DONE:
            self.versions = self._versions_with(commit)
        commit.state = state

    def _versions_with(self, commit: Commit) -> dict[str, list[int]]:
        if not commit.application:
            return self.versions
        versions = {**self.versions, commit.application: [commit.version, commit.sequence]}
        if len(versions) > APPLICATIONS_MAX:
            del versions[min(versions, key=lambda name: versions[name][1])]
        return versions


def check_commits(files: Files, data: str) -> Iterator[CorruptRecord]:
    """Yield the damage of the file, and of the two beside it."""
    path = staged_layout.commit_file(data)
    for each in (path, f"{path}.{DONE}", f"{path}.{UNDONE}"):
        try:
            content = read_sealed(files, each)
            if content is not None:
                _decode(content, each)
        except CorruptRecord as error:
            yield error


def read_last(files: Files, data: str) -> Commit | None:
    """Return the last commit, for readers in other processes; None if there was none.

    Raises:
        CorruptRecord: the file and the two beside it are damaged.
    """
    path = staged_layout.commit_file(data)
    try:
        content = read_sealed(files, path)
    except CorruptRecord:
        found = _read(files, path)
        return None if found is None else found[0]
    return None if content is None else _known(content.partition(b"\n")[0], path)


@lru_cache(maxsize=8)
def _known(line: bytes, path: str) -> Commit:
    """Decode the record in `line`; cached: a reader needs it twice for each of many partitions."""
    return _decode_first(line, path)


def commit_key(files: Files, data: str) -> tuple[int, str]:
    """Return a key that changes when a commit begins or is decided."""
    last = read_last(files, data)
    return (0, "") if last is None else (last.sequence, last.state)


def _read(files: Files, path: str) -> tuple[Commit, dict[str, list[int]]] | None:
    """Read the file; if it is damaged, find its content in the two files beside it.

    The last `prepare` wrote both; a decision renamed one of them to this file: the other remains.
    """
    try:
        content = read_sealed(files, path)
        return None if content is None else _decode(content, path)
    except CorruptRecord as damage:
        done, undone = (
            _read_beside(files, f"{path}.{DONE}"),
            _read_beside(files, f"{path}.{UNDONE}"),
        )
        if undone is not None:
            commit, versions = undone
            is_open = done is not None and done[0].sequence == commit.sequence
            commit.state = PREPARED if is_open else DONE
            if not is_open and commit.application:
                versions[commit.application] = [commit.version, commit.sequence]
            return commit, versions
        if done is None:
            raise damage
        commit, versions = done
        commit.state = UNDONE
        if commit.application:
            # The application's last version is unknown, but it is below the undone one.
            versions[commit.application] = [commit.version - 1, commit.sequence]
        return commit, versions


def _read_beside(files: Files, path: str) -> tuple[Commit, dict[str, list[int]]] | None:
    try:
        content = read_sealed(files, path)
        return None if content is None else _decode(content, path)
    except CorruptRecord:
        return None


def _decode(content: bytes, path: str) -> tuple[Commit, dict[str, list[int]]]:
    from json import loads

    _, _, second = content.partition(b"\n")
    try:
        return _decode_first(content, path), loads(second)
    except (ValueError, RecursionError) as error:
        raise CorruptRecord(path, 0, f"not a record of commits: {error!r}") from None


def _decode_first(content: bytes, path: str) -> Commit:
    try:
        return Commit.decode(content.partition(b"\n")[0])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CorruptRecord(path, 0, f"not a record of a commit: {error!r}") from None
