"""Serializers and deserializers: the values of key.serializer, value.deserializer and so on.

    producer = cluster.producer(value_serializer=text_serializer)

Each setting takes one of

    a function   value -> bytes or None; a deserializer is bytes -> value
    an object    with a method `serialize(topic, value)`, or `deserialize(topic, data)`
    a class      of such objects, called without arguments

An object may also have `configure(settings, is_key)`, called once with the client's settings by
their dotted names, and `close()`, called when the client closes. An exception from `close` is
logged and ignored.

None stands for null, in keys and in values. None is never passed to a serializer, nor null to a
deserializer. So every serializer can send a tombstone (a null value), and no deserializer fails at
one, as with Kafka's own serializers and its consumer.
"""

from __future__ import annotations

from struct import Struct

from embedlog.client.user_code import attempt, describe
from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_INT64 = Struct(">q")
_log = Logger("client")


def text_serializer(value: str | None) -> bytes | None:
    """Encode a text as UTF-8; None stays None."""
    return None if value is None else value.encode()


def text_deserializer(data: bytes | None) -> str | None:
    """Decode UTF-8; None stays None."""
    return None if data is None else data.decode()


def integer_serializer(value: int | None) -> bytes | None:
    """Pack an integer into 8 bytes, big-endian, as Kafka's LongSerializer does."""
    return None if value is None else _INT64.pack(value)


def integer_deserializer(data: bytes | None) -> int | None:
    """Unpack an integer of 8 bytes, big-endian."""
    return None if data is None else int(_INT64.unpack(data)[0])


def json_serializer(value: object) -> bytes:
    """Encode a value as JSON in UTF-8."""
    from json import dumps

    return dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def json_deserializer(data: bytes | None) -> object:
    """Decode JSON; None stays None."""
    from json import loads

    return None if data is None else loads(data)


class Converter:
    """One serializer or deserializer of one client, in any of the forms that users may give."""

    def __init__(self, setting: str, given: Any, settings: Mapping[str, Any]) -> None:
        """Configure `given`, the value of a client's `setting` such as value.serializer.

        An exception from a class that is called here, or from `configure`, is not caught: a wrongly
        configured client is not built.
        """
        method = method_of(setting)
        if isinstance(given, type) and hasattr(given, method):
            given = given()
        self.setting = setting
        self.given = given
        self._takes_topic = hasattr(given, method)
        self._function: Callable[..., Any] = getattr(given, method, given)
        self.name = describe(given)
        """Name of the user's function or class, for errors."""
        configure = getattr(given, "configure", None)
        if configure is not None:
            configure(settings, setting.startswith("key."))

    def for_topic(self, topic: str) -> Callable[[Any], Any]:
        """Return the function of one argument that converts a topic's keys or values."""
        if self._takes_topic:
            from functools import partial

            return partial(self._function, topic)
        return self._function

    def close(self) -> None:
        close = getattr(self.given, "close", None)
        if close is None or isinstance(self.given, type):
            return
        error = attempt(close)
        if error is not None:
            _log.warning(
                "%s %s: close raised and was ignored", self.setting, self.name, exc_info=error
            )


def method_of(setting: str) -> str:
    """Return the name of the method that an object for this setting must have."""
    return "deserialize" if setting.endswith("deserializer") else "serialize"
