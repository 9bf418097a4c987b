"""Interceptors: a user's code that sees, and may replace, what a client sends or receives.

    class Stamp:
        def on_send(self, record): return record.replace(value=b"1:" + record.value)
        def on_acknowledgement(self, metadata, error): ...

    producer = cluster.producer(interceptor_classes=[Stamp])

An interceptor is an object, or a class that is called without arguments. Methods it lacks are
passed over; `configure(settings)` is called first and `close()` last. The others are

    producer   on_send(record) -> record, in the thread that sends
               on_acknowledgement(metadata, error), in a thread that drives, before the callback
    consumer   on_consume(records) -> records
               on_commit(offsets)

They run in the order given, each seeing what the one before it made. What one of them raises is
logged and goes no further: an interceptor must not stop a program that works without it.
"""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    V = TypeVar("V")


class InterceptorChain:
    """The interceptors of one client. As thread-safe as they are."""

    __slots__ = ("_interceptors",)

    def __init__(self, given: Iterable[Any], settings: Mapping[str, Any]) -> None:
        """`settings` are the client's, by their dotted names.

        What a class raises when it is called, or `configure`, passes through: a client that is
        configured wrongly is not built.

        Raises:
            ConfigError: a name is given; no configuration makes a client load code.
        """
        for each in given:
            if isinstance(each, str):
                raise ConfigError(
                    f"interceptor.classes={each!r}: give the class or an object, not a name"
                )
        self._interceptors = [each() if isinstance(each, type) else each for each in given]
        for interceptor in self._interceptors:
            configure = getattr(interceptor, "configure", None)
            if configure is not None:
                configure(settings)

    def __len__(self) -> int:
        return len(self._interceptors)

    def transform(self, method: str, value: V) -> V:
        """What becomes of `value` when each interceptor's `method` is given the last good one."""
        for interceptor in self._interceptors:
            call = getattr(interceptor, method, None)
            if call is not None:
                try:
                    value = call(value)
                except Exception:
                    _log(interceptor, method)
        return value

    def tell(self, method: str, *news: object) -> None:
        """Call `method(*news)` of each interceptor."""
        for interceptor in self._interceptors:
            call = getattr(interceptor, method, None)
            if call is not None:
                try:
                    call(*news)
                except Exception:
                    _log(interceptor, method)

    def close(self) -> None:
        """Call `close()` of each interceptor."""
        self.tell("close")


def _log(interceptor: object, method: str) -> None:
    from logging import getLogger

    name = type(interceptor).__name__
    getLogger("embedlog.client").warning(
        "%s.%s raised and was ignored", name, method, exc_info=True
    )
