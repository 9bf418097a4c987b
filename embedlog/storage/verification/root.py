"""The rules of a data directory's small files, for `verify`.

- The shutdown marker has Kafka's form or ours. Our form names the same boot as the lock file.
- meta.properties has the version and the ids that a broker needs.
- In a directory that embedlog closed and no other process has opened since then, each checkpoint in
  Kafka's text form agrees with its sealed twin and names only existing logs. No offset is outside
  its log.

Not checked: whether the cluster id, node id and directory id are the right ones, and the process id
and the time in the lock file. In a directory that is in use, was not closed, or was closed by
Kafka, a text may differ from its twin: after a crash the text may be older, after Kafka newer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from embedlog.common import TopicPartition, uuid_from_text
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import Files
from embedlog.storage import paths
from embedlog.storage.directory.meta_properties import read_properties
from embedlog.storage.recovery.start_offset import UNKNOWN
from embedlog.storage.state_files.archived_offsets import PREFIX, read_archive
from embedlog.storage.state_files.checkpoint_files import (
    NAMES,
    WITH_TWIN,
    encode_offsets,
    read_text,
    read_twin,
)
from embedlog.storage.state_files.sealed_file import read_sealed

_KAFKAS = {"version", "brokerEpoch"}
_OURS = {*_KAFKAS, "synced", "bootId"}


def was_closed_by_us(files: Files, data: str) -> bool:
    """Return whether embedlog, and not Kafka, wrote the directory's shutdown marker."""
    try:
        return b'"bootId"' in files.read(f"{data}/{paths.CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return False


def check_archives(files: Files, data: str) -> Iterator[CorruptRecord]:
    """Yield the damage of the files that say how far archives have copied each partition."""
    for name in files.list(data):
        if name.startswith(PREFIX) and not name.endswith(paths.TEMPORARY):
            try:
                read_archive(files, f"{data}/{name}")
            except CorruptRecord as error:
                yield error


def check_marker(files: Files, data: str) -> Iterator[CorruptRecord]:
    """Yield the damage of the shutdown marker, if there is one."""
    path = f"{data}/{paths.CLEAN_SHUTDOWN}"
    try:
        content = files.read(path)
    except FileNotFoundError:
        return
    if not content:
        return  # a loss of power emptied it; an open treats it as missing
    try:
        marker = json.loads(content)
    except ValueError as error:
        yield CorruptRecord(path, 0, f"malformed: {error}")
        return
    names = set(marker) if isinstance(marker, dict) else set()
    if names not in (_KAFKAS, _OURS) or marker["version"] != 0:
        yield CorruptRecord(path, 0, f"no shutdown marker: {content[:200]!r}")
        return
    if not isinstance(marker["brokerEpoch"], int) or marker["brokerEpoch"] < -1:
        yield CorruptRecord(path, 0, f"broker epoch {marker['brokerEpoch']!r}")
    if names == _OURS:
        yield from _check_ours(files, data, marker)


def _check_ours(files: Files, data: str, marker: Mapping[str, object]) -> Iterator[CorruptRecord]:
    path = f"{data}/{paths.CLEAN_SHUTDOWN}"
    if marker["brokerEpoch"] != -1:
        yield CorruptRecord(path, 0, f"broker epoch {marker['brokerEpoch']!r}, expected -1")
    if not isinstance(marker["synced"], bool):
        yield CorruptRecord(path, 0, f"synced is {marker['synced']!r}")
    boot_id = marker["bootId"]
    try:
        owner = files.read(f"{data}/{paths.LOCK}").decode("utf-8", "replace").split()
    except FileNotFoundError:
        return  # a copied directory may lack the lock file
    # The same process writes the marker and the lock file, so one of them is damaged.
    if owner and boot_id and boot_id not in owner:
        reason = f"boot {boot_id!r}, the lock file names {' '.join(owner)[:200]!r}"
        yield CorruptRecord(path, 0, reason)


def check_properties(files: Files, data: str) -> Iterator[CorruptRecord]:
    """Yield the damage of meta.properties."""
    path = f"{data}/{paths.META_PROPERTIES}"
    if files.stat(path) is None:
        return
    properties = read_properties(files, path)
    version = properties.get("version")
    if version != "1":
        yield CorruptRecord(path, 0, f"version {version!r}, expected 1")
    if not properties.get("node.id", "").isdecimal():
        yield CorruptRecord(path, 0, f"node.id {properties.get('node.id')!r}")
    if not properties.get("cluster.id"):
        yield CorruptRecord(path, 0, "no cluster.id")
    directory_id = properties.get("directory.id")
    if directory_id is not None:
        try:
            uuid_from_text(directory_id)
        except ValueError as error:
            yield CorruptRecord(path, 0, f"directory.id {directory_id!r}: {error}")


def check_texts(
    files: Files, data: str, partitions: set[TopicPartition]
) -> Iterator[CorruptRecord]:
    """Yield the damage of the checkpoints in Kafka's text form.

    `partitions` are all partitions that have a directory. Requires: embedlog closed the directory.
    """
    for name in NAMES:
        path = f"{data}/{name}"
        try:
            text = read_text(files, data, name)
            twin = read_twin(files, data, name) if name in WITH_TWIN else None
        except CorruptRecord:
            continue  # `DirectoryCheck` reports it
        if text is None:
            continue
        if files.read(path) != encode_offsets(text):
            yield CorruptRecord(path, 0, "not in the form in which it was written")
        for topic_partition in text.keys() - partitions:
            yield CorruptRecord(path, 0, f"{topic_partition}, which has no directory")
        if twin is None:
            continue
        expected = {
            key: text.get(key, UNKNOWN) if offset == UNKNOWN else offset
            for key, offset in twin.items()
        }
        if text != expected:
            reason = f"{dict(text.items() ^ expected.items())} are not in both forms"
            yield CorruptRecord(path, 0, reason)


def check_epochs_text(files: Files, directory: str) -> Iterator[CorruptRecord]:
    """Yield a difference between the two files of a log's epochs: Kafka's text and our sealed one.

    Requires: embedlog closed the directory.
    """
    path = f"{directory}/{paths.LEADER_EPOCHS}"
    try:
        text = files.read(path)
        sealed = read_sealed(files, f"{directory}/{paths.SEALED_LEADER_EPOCHS}")
    except (FileNotFoundError, CorruptRecord):
        return
    if sealed is not None and text != sealed:
        yield CorruptRecord(path, 0, f"{text[:200]!r}, the sealed form has {sealed[:200]!r}")
