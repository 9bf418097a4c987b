"""How far archives have copied each partition: retention may wait for them.

A job that archives topics stores, after each of its commits, the offset below which every record is
in the archive. Each archive has a sealed file in the data directory, which only its job writes; the
job replaces it whole:

    embedlog-archived-<id>    {"archive": "...", "offsets": [[topic, partition, offset, topic id]]}

If a topic's setting `embedlog.retention.archived` is true, retention by size and age removes
nothing from that offset on. If there are several archives, the lowest offset counts. While there is
no archive, or the file of one cannot be read, nothing is removed: the disk may fill up, which is
logged, but no record is lost before it is archived. DeleteRecords and the deletion of a topic go
on, because somebody ordered them. So does compaction, which keeps the newest record of each key.

An offset with another topic id does not count: the topic was deleted and created again.
"""

from __future__ import annotations

from embedlog.common import TopicPartition, uuid_to_text
from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.state_files import partition_metadata
from embedlog.storage.state_files.foreign_document import number, read_document, text
from embedlog.storage.state_files.sealed_file import write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.runtime.files import Files

PREFIX = "embedlog-archived-"


def publish_archived(
    files: Files,
    data: str,
    archive: str,
    offsets: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, str],
) -> None:
    """Store that `archive` has every record below these offsets, for good: the file is synced.

    `archive` is an id of letters, digits and hyphens. The call replaces the archive's earlier
    offsets. `topic_ids` are the ids that the topics had when their records were read; for a topic
    without an entry, the id beside its log is taken.

    Raises:
        CorruptRecord: the id beside a log is damaged.
    """
    from json import dumps

    entries = [
        [
            key.topic,
            key.partition,
            offset,
            topic_ids.get(key.topic) or uuid_to_text(_topic_id(files, data, key)),
        ]
        for key, offset in sorted(offsets.items())
    ]
    content = dumps({"archive": archive, "offsets": entries}).encode()
    write_sealed(files, _path(data, archive), content, sync=True)


def withdraw_archived(files: Files, data: str, archive: str) -> None:
    """Remove the offsets of `archive`, if there are any: retention no longer waits for it."""
    try:
        files.remove(_path(data, archive))
    except FileNotFoundError:
        return
    files.sync_directory(data)


def read_archived(files: Files, data: str) -> dict[TopicPartition, int]:
    """Return the offset below which all archives have a partition's records, by partition.

    Return {} if the file of an archive is damaged.
    """
    found: dict[TopicPartition, int] = {}
    for name in files.list(data):
        if not name.startswith(PREFIX) or name.endswith(paths.TEMPORARY):
            continue
        try:
            entries = read_archive(files, f"{data}/{name}")
        except CorruptRecord as error:
            events.warning("retention waits, because the archived offsets are unknown: %s", error)
            return {}
        for key, offset, topic_id in entries:
            if topic_id == _known_id(files, data, key):
                found[key] = min(offset, found.get(key, offset))
    return found


def read_archive(files: Files, path: str) -> list[tuple[TopicPartition, int, str]]:
    """Return the (partition, offset, topic id) entries of one file; none if it is missing."""
    told = read_document(files, path)
    try:
        return [
            (TopicPartition(text(topic), number(partition)), number(offset), text(topic_id))
            for topic, partition, offset, topic_id in (() if told is None else told["offsets"])
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptRecord(path, 0, str(error)) from None


def _path(data: str, archive: str) -> str:
    return f"{data}/{PREFIX}{archive}"


def _topic_id(files: Files, data: str, key: TopicPartition) -> bytes:
    path = f"{paths.log_directory(data, key)}/{paths.PARTITION_METADATA}"
    return partition_metadata.decode(files.read(path), path)


def _known_id(files: Files, data: str, key: TopicPartition) -> str | None:
    try:
        return uuid_to_text(_topic_id(files, data, key))
    except (FileNotFoundError, CorruptRecord):
        return None
