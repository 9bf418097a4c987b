"""JSON documents that other processes leave in a data directory.

Anybody who may write into the directory can leave anything there, so every byte is input: any
wrong file gives CorruptRecord.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.storage.state_files.sealed_file import read_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.runtime.files import Files

SIZE_MAX = 64 << 20
"""A larger file is not read. A manifest of 100,000 staged files has some 15 MB."""
_INT64_MAX = (1 << 63) - 1


def read_document(files: Files, path: str) -> dict[str, Any] | None:
    """Return the JSON object of a sealed file; None if there is no file.

    Raises:
        CorruptRecord: it is no regular file, too large, damaged, or no JSON object.
    """
    stat = files.stat(path)
    if stat is None:
        return None
    if not stat.is_file:
        raise CorruptRecord(path, 0, "no regular file")
    if stat.size > SIZE_MAX:
        raise CorruptRecord(path, 0, f"{stat.size} bytes, at most {SIZE_MAX} are read")
    content = read_sealed(files, path)
    return None if content is None else decode_document(content, path)


def decode_document(content: bytes, path: str) -> dict[str, Any]:
    """Return the JSON object in `content`; CorruptRecord if it is none."""
    from json import loads

    try:
        found = loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise CorruptRecord(path, 0, f"no JSON: {error!r}") from None
    if not isinstance(found, dict):
        raise CorruptRecord(path, 0, f"no JSON object: {type(found).__name__}")
    return found


def text(value: object) -> str:
    """Return `value` if it is text that can be encoded; else raise ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} instead of text")
    value.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
    return value


def number(value: object, least: int = 0) -> int:
    """Return `value` if it is an integer from `least` to 2^63 - 1; else raise ValueError."""
    if type(value) is not int or not least <= value <= _INT64_MAX:
        raise ValueError(f"{str(value)[:30]} instead of an integer from {least} on")
    return value


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number")
