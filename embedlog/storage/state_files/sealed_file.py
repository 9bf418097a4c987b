"""A small state file with a checksum.

    0    8 bytes  "embedlog"
    8    uint16   version, 1
    10   uint32   size of the content
    14   uint32   CRC-32C of the content
    18   content

Kafka's text checkpoints have no checksum: a flipped digit makes another valid offset. State on
which the broker relies is stored in this form as well.
"""

from __future__ import annotations

from struct import Struct

from embedlog.errors import CorruptRecord
from embedlog.runtime.files import write_whole
from wire.records.crc32c import crc32c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import Files

_MAGIC = b"embedlog"
_VERSION = 1
_HEADER = Struct(">8sHII")


def write_sealed(files: Files, path: str, content: bytes, *, sync: bool) -> None:
    """Replace the file, whole or not at all; with `sync` it survives a loss of power."""
    header = _HEADER.pack(_MAGIC, _VERSION, len(content), crc32c(content))
    write_whole(files, path, header + content, sync=sync)


def read_sealed(files: Files, path: str) -> bytes | None:
    """Return the content, or None if there is no file; CorruptRecord if the file is damaged."""
    try:
        whole = files.read(path)
    except FileNotFoundError:
        return None
    if len(whole) < _HEADER.size:
        raise CorruptRecord(path, len(whole), "too short")
    magic, version, size, crc = _HEADER.unpack_from(whole)
    content = whole[_HEADER.size :]
    if (magic, version, size) != (_MAGIC, _VERSION, len(content)):
        raise CorruptRecord(path, 0, f"header {whole[: _HEADER.size]!r}")
    if crc32c(content) != crc:
        raise CorruptRecord(path, _HEADER.size, f"crc {crc32c(content):#x}, stored {crc:#x}")
    return content
