"""The end of a foreign client, before its cluster ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import iscoroutinefunction
from sys import modules
from typing import Any

from embedlog.errors import ConfigError

_FLUSH_S = 10.0
_ENDS = ("close", "stop", "flush")
"""Methods that end a client, the best first. An old confluent-kafka's producer has only `flush`."""


def ending(client: Any) -> Callable[[], object]:
    """Return the function that ends a client.

    Raises:
        ConfigError: the client has none, or it ends only in its own event loop.
    """
    for name in _ENDS:
        end = getattr(client, name, None)
        if end is None:
            continue
        if iscoroutinefunction(end):
            raise ConfigError(
                f"{type(client).__name__} ends in its own event loop: use `async with` it, or "
                f"await its {name}() in the test"
            )
        end = partial(end, _FLUSH_S) if name == "flush" else end
        return partial(_end_confluent, end) if _is_confluent(client) else end
    raise ConfigError(f"{client!r} has no method {', '.join(_ENDS)}, so it cannot be closed")


def _is_confluent(client: Any) -> bool:
    return any(each.__module__ == "cimpl" for each in type(client).__mro__)


def _end_confluent(end: Callable[[], object]) -> None:
    """End a client of confluent-kafka.

    A fenced producer repeats its fatal error here. The test has provoked it, and knows.
    """
    try:
        end()
    except modules["confluent_kafka"].KafkaException as error:
        if not error.args[0].fatal():
            raise
