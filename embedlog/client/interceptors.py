"""Interceptors: user code that sees, and may replace, the records of a client.

    class Stamp:
        def on_send(self, record): return record.replace(value=b"1:" + record.value)
        def on_acknowledgement(self, metadata, error): ...

    producer = cluster.producer(interceptor_classes=[Stamp])

An interceptor is an object, or a class that is called without arguments. It may leave out any
method. `configure(settings)` is called first and `close()` last. The other methods are

    producer   on_send(record) -> record, in the thread that sends
               on_acknowledgement(metadata, error), in the thread of the pass, before the callback
    consumer   on_consume(records) -> records
               on_commit(offsets)

Interceptors run in the given order, and each gets the result of the previous one. An exception is
logged and ignored: an interceptor must not stop a program that works without it. A wrong result is
logged with the interceptor's name and ignored as well: an `on_send` that returns no
`ProducerRecord`, or an `on_consume` that returns neither `ConsumerRecords` nor a list of records.
`on_consume` sees the records of `poll` and of iteration, but not the records of `poll_batches` and
`poll_columns`.
"""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.logger import Logger
from embedlog.runtime.outer_call import as_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeVar

    V = TypeVar("V")


_log = Logger("client")


class InterceptorChain:
    """The interceptors of one client. Thread-safe if the interceptors are."""

    def __init__(self, given: Iterable[Any], settings: Mapping[str, Any]) -> None:
        """`settings` are the client's, by their dotted names.

        An exception from a class that is called here, or from `configure`, is not caught: a wrongly
        configured client is not built.

        Raises:
            ConfigError: an interceptor is given as a name; no configuration makes a client load
                code.
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
        """Pass `value` through `method` of each interceptor; skip exceptions and wrong results."""
        for interceptor in self._interceptors:
            call = getattr(interceptor, method, None)
            if call is not None:
                try:
                    made = as_user(call, value)
                except Exception as error:
                    _log_error(interceptor, method, error, value)
                    continue
                accepted = _accepted(made, value)
                if accepted is None:
                    _log_return(interceptor, method, made, value)
                else:
                    value = accepted
        return value

    def tell(self, method: str, *news: object) -> None:
        for interceptor in self._interceptors:
            call = getattr(interceptor, method, None)
            if call is not None:
                try:
                    as_user(call, *news)
                except Exception as error:
                    _log_error(interceptor, method, error, *news)

    def close(self) -> None:
        self.tell("close")


def _accepted(made: Any, given: Any) -> Any:
    """Return `made` if it is of the same kind as `given`; else None."""
    if isinstance(made, type(given)):
        # A tuple of another length is not a whole record.
        is_whole = not isinstance(given, tuple) or len(made) == len(given)
        return made if is_whole else None
    regroup = getattr(given, "of_records", None)
    return regroup(made) if regroup is not None and isinstance(made, list | tuple) else None


def _log_error(interceptor: object, method: str, error: Exception, *news: object) -> None:
    _log.warning(
        "%s.%s raised and was ignored%s",
        type(interceptor).__name__,
        method,
        _place(*news),
        exc_info=error,
    )


def _log_return(interceptor: object, method: str, made: object, given: object) -> None:
    _log.warning(
        "%s.%s returned %s instead of %s and was ignored%s",
        type(interceptor).__name__,
        method,
        "None" if made is None else f"a {type(made).__name__}",
        type(given).__name__,
        _place(given),
    )


def _place(*news: Any) -> str:
    """Return the topic, partition and offset of the first record in `news`, in words."""
    about: Any = news[0] if news else None
    if hasattr(about, "partitions"):
        firsts = [f"{key} from offset {records[0].offset}" for key, records in about.items()]
        return f", for records of {', '.join(firsts)}" if firsts else ""
    if hasattr(about, "topic"):
        partition = getattr(about, "partition", None)
        name = about.topic if partition is None else f"{about.topic}-{partition}"
        offset = getattr(about, "offset", -1)
        return f", for a record of {name}" + (f" at offset {offset}" if offset >= 0 else "")
    if isinstance(about, dict) and about:
        return f", for offsets of {', '.join(map(str, about))}"
    return ""
