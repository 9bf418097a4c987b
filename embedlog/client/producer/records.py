"""The records that users give to a producer, and their conversion to bytes."""

from __future__ import annotations

from embedlog.client.arguments import several, shown, timestamp_ms
from embedlog.client.errors import SerializationError
from embedlog.common import item
from embedlog.runtime.outer_call import as_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Final

    from embedlog.client.interceptors import InterceptorChain
    from embedlog.client.producer.batch import DeliveryCallback, RecordMetadata
    from embedlog.client.producer.sizes import Headers
    from embedlog.client.serializers import Converter

    Given = tuple[
        Sequence[Any], Sequence[Any] | None, Sequence[int] | int, Sequence[Headers] | None
    ]
    """Values, keys, timestamps, headers."""
    _RecordBase = tuple[str, Any, Any, int | None, int | None, Headers | None]
else:
    _RecordBase = tuple

_PAIR = 2
_INT = {int}
_FIELDS = ("topic", "value", "key", "partition", "timestamp_ms", "headers")


class ProducerRecord(_RecordBase):
    """The argument of an interceptor's `on_send`: the arguments of `send`, before they are
    serialized.

    (topic, value, key, partition, timestamp_ms, headers); it cannot be changed, only replaced.
    """

    __slots__ = ()

    topic: Final[str] = item(0)
    value: Final[Any] = item(1)
    key: Final[Any] = item(2)
    partition: Final[int | None] = item(3)
    timestamp_ms: Final[int | None] = item(4)
    headers: Final[Headers | None] = item(5)

    def replace(self, **changes: Any) -> ProducerRecord:
        """Return a copy of the record with the given fields changed.

        >>> embedlog.ProducerRecord(("t", b"v", None, None, None, None)).replace(value=b"w").value
        b'w'
        """
        unknown = changes.keys() - set(_FIELDS)
        if unknown:
            raise TypeError(f"a record has no {', '.join(sorted(unknown))}")
        fields = [changes.get(name, old) for name, old in zip(_FIELDS, self, strict=True)]
        return ProducerRecord(fields)

    def __repr__(self) -> str:
        fields = [f"{name}={value!r}" for name, value in zip(_FIELDS, self, strict=True)]
        return f"ProducerRecord({', '.join(fields)})"


class Acknowledgement:
    """A delivery callback that first calls the interceptors, then the user's callback."""

    __slots__ = ("_chain", "func")

    def __init__(self, chain: InterceptorChain, callback: DeliveryCallback | None) -> None:
        self._chain = chain
        self.func = callback
        """The user's callback, which errors name."""

    def __call__(self, metadata: RecordMetadata, error: Exception | None) -> None:
        self._chain.tell("on_acknowledgement", metadata, error)
        if self.func is not None:
            self.func(metadata, error)


def tells_user(callback: DeliveryCallback) -> bool:
    """Return whether the callback reaches the user, not only interceptors."""
    return type(callback) is not Acknowledgement or callback.func is not None


def own_columns(
    values: Any, keys: Any, timestamps: Any, headers: Any, *, wall_ms: Callable[[], int]
) -> Given:
    """Check the arguments of `send_batch`; return them as lists that the caller cannot change any
    more.

    Values and keys themselves are checked after they have been serialized. Copying the lists takes
    4 ns a record.

    Raises:
        TypeError, ValueError: an argument is of the wrong kind or out of range, or a column is not
            as long as the values.
    """
    call = "send_batch"
    values = several(values, call, "values", "values")
    if keys is not None:
        keys = several(keys, call, "keys", "keys")
    if timestamps is None:
        timestamps = wall_ms()
    elif hasattr(timestamps, "__index__") or not hasattr(timestamps, "__iter__"):
        timestamps = timestamp_ms(timestamps, call, "timestamps")
    else:
        timestamps = several(timestamps, call, "timestamps", "timestamps, or one for all")
        if not _INT.issuperset(map(type, timestamps)) or min(timestamps, default=0) < 0:
            stamps = enumerate(timestamps)
            timestamps = [timestamp_ms(each, call, f"timestamps[{i}]") for i, each in stamps]
    if headers is not None:
        rows = several(headers, call, "headers", "headers, a list of pairs for each value")
        headers = [checked_headers(row) if row else () for row in rows]
    for name, column in (("keys", keys), ("timestamps", timestamps), ("headers", headers)):
        if isinstance(column, list) and len(column) != len(values):
            raise ValueError(f"{len(column)} {name} for {len(values)} values")
    return values, keys, timestamps, headers


def intercepted(
    chain: InterceptorChain, topic: str, given: Given, partition: int | None
) -> Iterator[tuple[str, int | None, Given]]:
    """Let `on_send` see each record; then yield the columns of each (topic, partition)."""
    values, keys, timestamps, headers = given
    groups: dict[tuple[str, int | None], list[ProducerRecord]] = {}
    for index, value in enumerate(values):
        before = ProducerRecord(
            (
                topic,
                value,
                None if keys is None else keys[index],
                partition,
                timestamps if isinstance(timestamps, int) else timestamps[index],
                None if headers is None else headers[index],
            )
        )
        record = chain.transform("on_send", before)
        groups.setdefault((record.topic, record.partition), []).append(record)
    for (name, number), records in groups.items():
        _, column, key_column, _, stamps, header_column = map(list, zip(*records, strict=True))
        stamps = [0 if stamp is None else stamp for stamp in stamps]
        has_keys = any(key is not None for key in key_column)
        header_rows = [row or () for row in header_column]
        columns = (column, key_column if has_keys else None, stamps, header_rows)
        yield name, number, columns if any(header_rows) else (*columns[:3], None)


def serialized(serializer: Converter, data: Any, what: str, topic: str) -> Any:
    """Return the serialized key or value; None stays None. `what` names it in errors.

    Raises:
        SerializationError: the serializer raised; TypeError: it did not return bytes.
    """
    if data is None:
        return None
    try:
        made = as_user(serializer.for_topic(topic), data)
    except Exception as error:
        raise SerializationError(
            f"{serializer.setting} refused a {type(data).__name__} for topic {topic!r}: "
            f"{type(error).__name__}: {error} (raised by {serializer.name} for the {what})"
        ) from error
    if made is not None and not isinstance(made, bytes | bytearray | memoryview):
        raise TypeError(
            f"{serializer.setting} {serializer.name} returned {type(made).__name__} for the {what} "
            f"of a record for topic {topic!r}, not bytes"
        )
    return made


def as_bytes(value: Any, what: str) -> bytes:
    """Return an immutable copy.

    Raises:
        TypeError: the value is not bytes.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"{what} is {type(value).__name__}, not bytes: give a {what}.serializer")


def unchanging(data: Any) -> Any:
    """Return a copy of a writable buffer; anything else unchanged."""
    return bytes(data) if isinstance(data, bytearray | memoryview) else data


def checked_headers(headers: Headers) -> Headers:
    """Return the headers as a tuple of (str, bytes or None).

    Raises:
        TypeError: they are not such pairs, a name is not a str, or a value not bytes.
    """
    if isinstance(headers, str | bytes | dict) or not hasattr(headers, "__iter__"):
        advice = "; write list(headers.items())" if isinstance(headers, dict) else ""
        kind = type(headers).__name__
        raise TypeError(
            f"headers={shown(headers)}: expected a list of (name, bytes or None) pairs, "
            f"got {kind}{advice}"
        )
    checked = []
    for pair in headers:
        if not isinstance(pair, tuple | list) or len(pair) != _PAIR:
            raise TypeError(
                f"headers: {shown(pair)} is no (name, bytes or None) pair, in {shown(headers)}"
            )
        name, value = pair
        if not isinstance(name, str):
            raise TypeError(f"header {name!r}: its name is {type(name).__name__}, not str")
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"header {name!r}: its value is {type(value).__name__}, not bytes")
        checked.append((name, None if value is None else bytes(value)))
    return tuple(checked)
