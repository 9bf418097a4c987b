"""`LeakWatch`: what a test leaves behind: clients, transactions, threads, and errors of a broker.

connections     clients over sockets that are still connected
transactions    transactions without commit or abort
threads         Python threads that began in the test and still run
errors          exceptions in the brokers: bugs of embedlog, which the clients see only as
                UNKNOWN_SERVER_ERROR or as a broken connection
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedlog.errors import ConfigError, EmbedlogError
from embedlog.runtime.pending import Pending
from embedlog.testing.names import hint

if TYPE_CHECKING:
    from logging import Handler, LogRecord
    from threading import Thread

    from embedlog.cluster.cluster import Cluster
    from embedlog.cluster.handles.cluster_listener import ClusterListener
    from embedlog.server.addresses import BrokerListener, ServedAddress
    from wire.net.connection import Connection

KINDS = ("connections", "errors", "threads", "transactions")
_GRACE_MS = 500
"""Time for clients that are just leaving, and for threads that are just ending."""
_OWN_THREADS = "embedlog-"
_LOGGERS = ("embedlog", "wire")


class LeakWarning(UserWarning):
    """A test left something behind: see `Kafka.leaks`."""


@dataclass(frozen=True, slots=True)
class Leak:
    """One thing that a test left behind."""

    kind: str
    """"connections", "errors", "threads" or "transactions"."""
    what: str
    """The thing: a client id and its address, a thread's name, a transactional id, an error."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


class LeakWatch:
    """Threads at the beginning of a test, and errors of brokers since then."""

    def __init__(self) -> None:
        self._threads = set(_threads())
        self._errors: list[str] = []
        _listen(self._errors)

    def begin_again(self) -> None:
        """Forget the threads and errors so far: another test begins."""
        self._threads = set(_threads())
        self._errors.clear()

    def found(
        self,
        cluster: Cluster,
        listener: BrokerListener | ClusterListener | None,
        kinds: Iterable[str] = (),
    ) -> list[Leak]:
        """Return the leaks at this moment: of all kinds, or of the given ones.

        Raises:
            ConfigError: a kind is unknown.
        """
        finders: dict[str, Callable[[], Iterable[str]]] = {
            "errors": lambda: list(self._errors),
            "connections": lambda: _connected(cluster, listener),
            "transactions": lambda: _open_transactions(cluster),
            "threads": lambda: [each.name for each in _lasting(self._threads)],
        }
        for kind in kinds:
            if kind not in finders:
                raise ConfigError(f"leaks of kind {kind!r} are unknown; {hint(kind, finders)}")
        return [Leak(kind, text) for kind in kinds or finders for text in finders[kind]()]

    def end(self) -> None:
        """Listen to errors no more."""
        _stop_listening(self._errors)


def _threads() -> list[Thread]:
    threading = sys.modules.get("threading")
    return [] if threading is None else list(threading.enumerate())


def _lasting(before: set[Thread]) -> list[Thread]:
    """Return the new threads that do not end soon."""
    new = [
        each for each in _threads() if each not in before and not each.name.startswith(_OWN_THREADS)
    ]
    for each in new:
        each.join(_GRACE_MS / 1_000 / len(new))
    return [each for each in new if each.is_alive()]


_handlers: list[Handler] = []
"""The handler of all watches, while there is one."""
_listeners: list[list[str]] = []
"""The errors of each watch. Identity tells lists apart: several may be equal."""


def _listen(errors: list[str]) -> None:
    """Collect the exceptions of embedlog's loggers in `errors`."""
    import logging

    class Collector(logging.Handler):
        """Keeps the errors, and leaves the lines of a program without handlers as they are."""

        def emit(self, record: LogRecord) -> None:
            if _is_bug(record):
                error = record.exc_info[1] if record.exc_info else None
                for each in list(_listeners):
                    each.append(f"{record.getMessage()}: {error!r}")
            last = logging.lastResort
            if last is not None and not logging.root.handlers and record.levelno >= last.level:
                last.handle(record)

    _listeners.append(errors)
    if not _handlers:
        _handlers.append(Collector(logging.WARNING))
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(_handlers[0])


def _stop_listening(errors: list[str]) -> None:
    from logging import getLogger

    _listeners[:] = [each for each in _listeners if each is not errors]
    if not _listeners and _handlers:
        handler = _handlers.pop()
        for name in _LOGGERS:
            getLogger(name).removeHandler(handler)


def _is_bug(record: LogRecord) -> bool:
    """Return whether a line tells of an exception that no disk, peer or user has caused."""
    error = record.exc_info[1] if record.exc_info else None
    return error is not None and not isinstance(error, OSError | EmbedlogError)


def _served(listener: BrokerListener | ClusterListener | None) -> list[ServedAddress]:
    if listener is None:
        return []
    served = listener.served
    return served if isinstance(served, list) else [served]


def _connections(served: list[ServedAddress]) -> list[Connection]:
    return [each for address in served for each in list(address.connections.by_fd.values())]


def _connected(cluster: Cluster, listener: BrokerListener | ClusterListener | None) -> list[str]:
    """Return a text for each client that does not leave soon."""
    served = _served(listener)
    if _connections(served):
        all_left: Pending[object] = Pending()

        def one_left() -> None:
            if not _connections(served) and not all_left.done():
                all_left.complete(None)

        for each in served:
            each.connections.dropped = one_left
        one_left()
        cluster.runtime.scheduler.wait(all_left, _GRACE_MS)
        for each in served:
            each.connections.dropped = None
    counts: dict[str, int] = {}
    for connection in _connections(served):
        name = _client(connection)
        counts[name] = counts.get(name, 0) + 1
    return [f"{name}, {count} open" for name, count in counts.items()]


def _client(connection: Connection) -> str:
    """Return the id of a connection's client, and the name of its library."""
    context = connection.state
    client_id = getattr(context, "client_id", None)
    software = getattr(context, "client_software_name", "")
    return f"client {client_id!r}" + (f" ({software})" if software else "")


def _open_transactions(cluster: Cluster) -> list[str]:
    from embedlog.topic_names import TRANSACTIONS_TOPIC

    if not any(
        TRANSACTIONS_TOPIC in each.core.image.topics_by_name
        for each in cluster.brokers
        if each.is_running
    ):
        return []  # no client has ever begun one
    with cluster.admin() as admin:
        found = admin.list_transactions(states=["Ongoing"], timeout_ms=1_000)
        unreachable = found.errors
    return [
        f"{each.transactional_id!r} of producer {each.producer_id}"
        for name, each in found.values.items()
        if name not in unreachable
    ]
