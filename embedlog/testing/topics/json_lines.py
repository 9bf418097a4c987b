"""Records as lines of JSON, in a file of the operating system.

    {"partition": 0, "offset": 7, "timestamp": 1700000000000, "key": "k", "value": "v",
     "headers": [["trace", "abc"]]}

Bytes are a string if they are UTF-8, else `{"base64": "..."}`; null is no key, or a tombstone. In a
file that a person wrote all members but "value" may be left out, "value" and "key" may be any other
JSON, and "headers" an object.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from json import dumps, loads
from typing import TYPE_CHECKING, Any

from embedlog.errors import ConfigError
from embedlog.runtime import real_runtime
from embedlog.runtime.files import write_whole
from embedlog.testing.names import hint
from embedlog.testing.topics.record import LogRecord
from embedlog.testing.topics.seeds import Seed, headers_of
from embedlog.testing.topics.times import milliseconds_of

if TYPE_CHECKING:
    from _typeshed import StrPath

_MEMBERS = ("partition", "offset", "timestamp", "key", "value", "headers", "topic")
_BASE64 = "base64"


def write_file(path: StrPath, records: Iterable[LogRecord]) -> int:
    """Replace a file by the records; return their number."""
    lines = [dumps(_line(each), ensure_ascii=False) for each in records]
    content = "".join(f"{line}\n" for line in lines)
    write_whole(real_runtime().files, str(path), content.encode(), sync=False)
    return len(lines)


def read_file(path: StrPath, *, keeps_offsets: bool) -> list[Seed]:
    """Return the records of a file; with `keeps_offsets` they get their offsets again.

    Raises:
        ConfigError: a line is wrong; the message has its number.
    """
    content = real_runtime().files.read(str(path))
    seeds = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            seeds.append(_seed(loads(line), keeps_offsets=keeps_offsets))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{path}, line {number}: {error}") from None
    return seeds


def _line(record: LogRecord) -> dict[str, Any]:
    line = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text_of(record.key),
        "value": _text_of(record.value),
    }
    if record.headers:
        line["headers"] = [[name, _text_of(value)] for name, value in record.headers]
    return line


def _text_of(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {_BASE64: b64encode(data).decode()}


def _bytes_of(given: Any) -> bytes | None:
    if given is None or isinstance(given, str):
        return None if given is None else given.encode()
    if isinstance(given, dict) and given.keys() == {_BASE64}:
        return b64decode(given[_BASE64], validate=True)
    return dumps(given, ensure_ascii=False).encode()


def _seed(line: Any, *, keeps_offsets: bool) -> Seed:
    if not isinstance(line, dict):
        raise ValueError(f"expected an object, found {line!r}")
    for name in line:
        if name not in _MEMBERS:
            raise ValueError(f"a record has no {name!r}; {hint(name, _MEMBERS)}")
    if "value" not in line:
        raise ValueError('no "value"; null is a tombstone')
    timestamp, partition, offset = (line.get(each) for each in ("timestamp", "partition", "offset"))
    for name, number in (("partition", partition), ("offset", offset)):
        if number is not None and type(number) is not int:
            raise ValueError(f"{name} {number!r} is no integer")
    headers = line.get("headers") or ()
    pairs = list(headers.items() if isinstance(headers, dict) else headers)
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError(f"headers {headers!r}: expected pairs of name and value")
    return Seed(
        _bytes_of(line["value"]),
        _bytes_of(line.get("key")),
        None if timestamp is None else milliseconds_of(timestamp),
        headers_of([(name, _bytes_of(value)) for name, value in pairs]),
        partition,
        offset if keeps_offsets else None,
    )
