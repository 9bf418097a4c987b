"""partition.metadata: the topic's id beside a log, so that no other topic takes over its data.

    version: 0
    topic_id: 5KS1wPRcRrC4nIrOtSmlEw
    crc: 1a2b3c4d                       CRC-32C of the lines above, which Kafka does not read

A damaged file is written again from the cluster's metadata. A file that Kafka wrote has no third
line, and is taken as it is.
"""

from __future__ import annotations

from embedlog.common import uuid_from_text, uuid_to_text
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import write_fully
from wire.records.crc32c import crc32c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import Files

_HEAD = b"version: 0\ntopic_id: "
_CRC = b"\ncrc: "


def encode(topic_id: bytes) -> bytes:
    """Return the content of the file."""
    text = _HEAD + uuid_to_text(topic_id).encode()
    return text + _CRC + b"%08x\n" % crc32c(text)


def decode(content: bytes, path: str) -> bytes:
    """Return the topic's id, or raise CorruptRecord."""
    text, mark, stored = content.partition(_CRC)
    if mark and stored != b"%08x\n" % crc32c(text):
        raise CorruptRecord(path, len(text), f"crc {crc32c(text):08x}, stored {stored!r}")
    if not text.startswith(_HEAD):
        raise CorruptRecord(path, 0, f"begins with {text[: len(_HEAD)]!r}")
    try:
        return uuid_from_text(text[len(_HEAD) :].decode().removesuffix("\n"))
    except ValueError as error:
        raise CorruptRecord(path, len(_HEAD), str(error)) from None


def write(files: Files, path: str, topic_id: bytes, *, sync: bool) -> None:
    """Replace the content of the file; its name is not synced."""
    file = files.open(path, create=True)
    file.truncate(0)
    write_fully(file.write, [encode(topic_id)], 0)
    if sync:
        file.sync()
    file.close()
