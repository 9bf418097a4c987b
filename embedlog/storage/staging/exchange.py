"""Handing a manifest to a directory's owner, and getting its answer, by files and renames.

    committer                                 owner
    write inbox/<id>
                                              rename inbox/<id> to taken/<id>
                                              commit, or replace
                                              write answers/<id>, remove taken/<id>
    read answers/<id>, remove it

    or, after waiting too long:
    rename inbox/<id> away                    finds nothing to take

If both rename the manifest, only one succeeds, so a withdrawn manifest is never committed later. If
the owner dies, the next owner works on the taken manifests again; it skips the manifest of the last
recorded commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from errno import ENOTEMPTY
from types import MappingProxyType
from typing import Any

from embedlog import errors
from embedlog.common import TopicPartition, Value
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import Files, remove_tree
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.staging.manifest import EndsRequest, Manifest, Replacement
from embedlog.storage.staging.manifest import decode as decode_manifest
from embedlog.storage.state_files import staged_layout
from embedlog.storage.state_files.commit_file import PREPARED, Commit, read_last
from embedlog.storage.state_files.foreign_document import SIZE_MAX, number, read_document, text
from embedlog.storage.state_files.sealed_file import read_sealed, write_sealed

DONE, ALREADY_DONE, REFUSED = "done", "done already", "refused"
_CODE_MIN = -1
ANSWER_AGE_MAX_MS = 3_600_000
"""An unread answer is removed after this time."""
STAGED_AGE_MAX_MS = 7 * 86_400_000
"""A job's staged files are removed when they have not changed for this time."""


class Answer(Value):
    """The answer to a manifest: the offsets of its records, or the reason why it was refused.

    `state` is DONE, ALREADY_DONE or REFUSED. `ranges` has (start, end) for each partition; it is
    empty if the version was committed before. `code` is Kafka's error code of a refusal, or 0.
    """

    state: str
    ranges: Mapping[TopicPartition, tuple[int, int]] = MappingProxyType({})
    code: int = 0
    message: str = ""

    @classmethod
    def of(cls, commit: Commit | None) -> Answer:
        """Make the answer from the result of `Adopter.adopt`."""
        return cls(ALREADY_DONE) if commit is None else cls(DONE, commit.ranges)

    @classmethod
    def refusal(cls, error: errors.EmbedlogError) -> Answer:
        code = error.code if isinstance(error, errors.KafkaError) else 0
        return cls(REFUSED, code=code, message=str(error))

    def check(self) -> None:
        """Raise the error of a refusal; return if the manifest was committed.

        Raises:
            KafkaError: a log or the disk refused.
            StorageFailed: a staged file is damaged.
        """
        if self.state != REFUSED:
            return
        if self.code:
            raise errors.error_for(self.code, self.message)
        raise errors.StorageFailed(self.message)

    def encode(self) -> bytes:
        from json import dumps

        ranges = [[*each, start, end] for each, (start, end) in self.ranges.items()]
        return dumps(
            {"state": self.state, "ranges": ranges, "code": self.code, "message": self.message}
        ).encode()

    @classmethod
    def from_json(cls, found: dict[str, Any], path: str) -> Answer:
        """Read an answer; `path` is for error messages. Raises CorruptRecord if it is none."""
        try:
            ranges = {
                TopicPartition(text(topic), number(index)): (number(start), number(end))
                for topic, index, start, end in found["ranges"]
            }
            code = number(found["code"], _CODE_MIN)
            return cls(text(found["state"]), ranges, code=code, message=text(found["message"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptRecord(path, 0, f"no answer: {error!r}") from None


# The committer


def leave(files: Files, data: str, manifest: Manifest | Replacement | EndsRequest) -> None:
    """Put a manifest into the inbox."""
    inbox = staged_layout.part(data, staged_layout.INBOX)
    path, content = f"{inbox}/{manifest.id}", manifest.encode()
    staged_layout.inside(
        files, inbox, lambda: write_sealed(files, path, content, sync=True), sync=True
    )


def withdraw(files: Files, data: str, id: str) -> bool:
    """Take a manifest back; return False if the directory's owner took it, and will answer it."""
    path = f"{staged_layout.part(data, staged_layout.INBOX)}/{id}"
    try:
        files.rename(path, path + paths.DELETED)
    except FileNotFoundError:
        return False
    files.remove(path + paths.DELETED)
    return True


def read_answer(files: Files, data: str, id: str) -> Answer | None:
    """Return the answer to a manifest, None without one; CorruptRecord if it is damaged."""
    path = f"{staged_layout.part(data, staged_layout.ANSWERS)}/{id}"
    found = read_document(files, path)
    return None if found is None else Answer.from_json(found, path)


def remove_answer(files: Files, data: str, id: str) -> None:
    """Remove an answer that the committer has read, if it still exists."""
    try:
        files.remove(f"{staged_layout.part(data, staged_layout.ANSWERS)}/{id}")
    except FileNotFoundError:
        return


def is_wanted(files: Files, data: str, job: str) -> bool:
    """Return whether a job's files may still be committed.

    They may if a waiting or taken manifest, or a prepared commit, names one of them.
    """
    last = read_last(files, data)
    wanted = [piece.path for piece in last.pieces] if last and last.state == PREPARED else []
    for part in (staged_layout.INBOX, staged_layout.TAKEN):
        for id in staged_layout.names_in(files, data, part):
            path = f"{staged_layout.part(data, part)}/{id}"
            try:
                wanted += [file.path for file in _read_manifest(files, path).files]
            except (CorruptRecord, FileNotFoundError):
                continue  # taken meanwhile; or damaged, so the directory's owner will refuse it
    return any(path.partition("/")[0] == job for path in wanted)


# The owner


def take(files: Files, data: str) -> list[str]:
    """Take the manifests of the inbox; return the ids of all taken manifests, sorted.

    Manifests that were taken earlier and not answered yet are included.
    """
    inbox, taken = (
        staged_layout.part(data, staged_layout.INBOX),
        staged_layout.part(data, staged_layout.TAKEN),
    )
    names = staged_layout.names_in(files, data, staged_layout.INBOX)
    if names:
        staged_layout.inside(files, taken, lambda: files.list(taken))
    for name in names:
        try:
            files.rename(f"{inbox}/{name}", f"{taken}/{name}")
        except FileNotFoundError:
            continue  # the committer has withdrawn it, or `tidy` has removed the directory
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            events.warning("%s/%s cannot be taken: %s", inbox, name, error)
            staged_layout.set_aside(files, data, staged_layout.INBOX, name)
        except OSError as error:
            if error.errno != ENOTEMPTY:
                raise
            staged_layout.set_aside(files, data, staged_layout.INBOX, name)
    return staged_layout.names_in(files, data, staged_layout.TAKEN)


def read_taken(files: Files, data: str, id: str) -> Manifest | Replacement | EndsRequest:
    """Read a taken manifest; FileNotFoundError without one, CorruptRecord if it is damaged."""
    path = f"{staged_layout.part(data, staged_layout.TAKEN)}/{id}"
    manifest = _read_manifest(files, path)
    if manifest.id != id:
        raise CorruptRecord(path, 0, f"it is the manifest {manifest.id}")
    return manifest


def _read_manifest(files: Files, path: str) -> Manifest | Replacement | EndsRequest:
    stat = files.stat(path)
    if stat is not None and (not stat.is_file or stat.size > SIZE_MAX):
        raise CorruptRecord(path, 0, f"no regular file, or larger than {SIZE_MAX} bytes")
    content = read_sealed(files, path)
    if content is None:
        raise FileNotFoundError(2, "no such manifest", path)
    return decode_manifest(content, path)


def refuse(files: Files, data: str, id: str, what: Answer) -> None:
    """Answer a taken manifest that cannot be understood, and set it aside for `health`."""
    answers = staged_layout.part(data, staged_layout.ANSWERS)
    path, content = f"{answers}/{id}", what.encode()
    try:
        staged_layout.inside(files, answers, lambda: write_sealed(files, path, content, sync=False))
    except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        events.warning("%s cannot be answered: %s", path, error)
    staged_layout.set_aside(files, data, staged_layout.TAKEN, id)


def answer(files: Files, data: str, id: str, what: Answer) -> None:
    """Answer a taken manifest. After an error call this again: the manifest is still taken."""
    answers = staged_layout.part(data, staged_layout.ANSWERS)
    path, content = f"{answers}/{id}", what.encode()
    staged_layout.inside(files, answers, lambda: write_sealed(files, path, content, sync=False))
    files.remove(f"{staged_layout.part(data, staged_layout.TAKEN)}/{id}")


def sweep(files: Files, data: str, wall_ms: int) -> list[str]:
    """Return the paths of answers and of jobs' directories that are old enough to be removed."""
    old = []
    for part, age_max_ms in (
        (staged_layout.ANSWERS, ANSWER_AGE_MAX_MS),
        (staged_layout.STAGED, STAGED_AGE_MAX_MS),
        (staged_layout.REFUSED, STAGED_AGE_MAX_MS),
    ):
        for name in staged_layout.names_in(files, data, part):
            path = f"{staged_layout.part(data, part)}/{name}"
            stat = files.stat(path)
            if stat is not None and wall_ms - stat.modified_ms > age_max_ms:
                old.append(path)
    return old


# The staging area


def discard(files: Files, data: str, job: str) -> None:
    """Remove the staged files of a job that is given up, if there are any."""
    staged = staged_layout.part(data, staged_layout.STAGED)
    if staged_layout.is_real(files, data, staged):
        remove_tree(files, f"{staged}/{job}")


def tidy(files: Files, data: str) -> None:
    """Remove the empty directories of the exchange."""
    for name in (
        staged_layout.STAGED,
        staged_layout.INBOX,
        staged_layout.TAKEN,
        staged_layout.ANSWERS,
        staged_layout.PINS,
        staged_layout.REFUSED,
        "",
    ):
        path = staged_layout.part(data, name) if name else staged_layout.exchange(data)
        try:
            files.remove(path)
        except OSError:
            continue  # the directory is missing, or is not empty
