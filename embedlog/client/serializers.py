"""Serializers and deserializers: what key.serializer, value.deserializer, ... may be.

    producer = cluster.producer(value_serializer=text_serializer)

Each setting takes one of

    a function   value -> bytes or None; a deserializer is bytes -> value
    an object    with a method `serialize(topic, value)`, or `deserialize(topic, data)`
    a class      of such objects, called without arguments

An object, or a callable one, may also have `configure(settings, is_key)`, called once when its
client is made, with the client's settings by their dotted names; and `close()`, called when the
client closes. What `close` raises is logged and goes no further.

None is null on both sides, for keys and for values: it is never given to a serializer nor null to a
deserializer. A null value is a tombstone, which every serializer can then send, and no deserializer
fails at: Kafka's consumer does so too, and its own serializers make null of null.
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
    """UTF-8 of a text; None stays None."""
    return None if value is None else value.encode()


def text_deserializer(data: bytes | None) -> str | None:
    """The text behind UTF-8 bytes; None stays None."""
    return None if data is None else data.decode()


def integer_serializer(value: int | None) -> bytes | None:
    """8 bytes, big-endian, as Kafka's LongSerializer."""
    return None if value is None else _INT64.pack(value)


def integer_deserializer(data: bytes | None) -> int | None:
    """The integer behind 8 bytes, big-endian."""
    return None if data is None else int(_INT64.unpack(data)[0])


def json_serializer(value: object) -> bytes:
    """UTF-8 of the JSON text of any value that has one."""
    from json import dumps

    return dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def json_deserializer(data: bytes | None) -> object:
    """The value behind JSON; None stays None."""
    from json import loads

    return None if data is None else loads(data)


class Converter:
    """One serializer or deserializer of one client, whatever form it was given in."""

    __slots__ = ("_function", "_takes_topic", "given", "name", "setting")

    def __init__(self, setting: str, given: Any, settings: Mapping[str, Any]) -> None:
        """`given` is what the client's `setting` names, such as value.serializer; configure it.

        What a class raises when it is called, or `configure`, passes through: a client that is
        configured wrongly is not built.
        """
        method = method_of(setting)
        if isinstance(given, type) and hasattr(given, method):
            given = given()
        self.setting = setting
        self.given = given
        self._takes_topic = hasattr(given, method)
        self._function: Callable[..., Any] = getattr(given, method, given)
        self.name = describe(given)
        """The user's name of it, for errors."""
        configure = getattr(given, "configure", None)
        if configure is not None:
            configure(settings, setting.startswith("key."))

    def for_topic(self, topic: str) -> Callable[[Any], Any]:
        """The function of one argument to call for keys or values of a topic."""
        if self._takes_topic:
            from functools import partial

            return partial(self._function, topic)
        return self._function

    def close(self) -> None:
        """Let the object give back what it holds."""
        close = getattr(self.given, "close", None)
        if close is None or isinstance(self.given, type):
            return
        error = attempt(close)
        if error is not None:
            _log.warning(
                "%s %s: close raised and was ignored", self.setting, self.name, exc_info=error
            )


def method_of(setting: str) -> str:
    """The method that an object given for the setting has."""
    return "deserialize" if setting.endswith("deserializer") else "serialize"
