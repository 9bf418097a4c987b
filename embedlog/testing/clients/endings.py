"""The end of a foreign client, before its cluster ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import iscoroutinefunction
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
        return partial(_end, partial(end, _FLUSH_S) if name == "flush" else end)
    raise ConfigError(f"{client!r} has no method {', '.join(_ENDS)}, so it cannot be closed")


def _end(end: Callable[[], object]) -> None:
    """End a client. One that a test has let fail for good, such as a fenced producer, is at its end
    already: librdkafka reports the same error again.
    """
    try:
        end()
    except Exception as error:
        cause = error.args[0] if error.args else None
        is_fatal = getattr(cause, "fatal", None)
        if not callable(is_fatal) or not is_fatal():
            raise
