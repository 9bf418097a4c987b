"""Producers that nobody closes: their cluster is closed first, or the program ends.

What `send` accepted shall be in the log all the same, and what is not shall be told.
"""

from __future__ import annotations

from _weakref import ref

from embedlog.client.user_code import attempt
from embedlog.logs import Log
from embedlog.runtime.at_exit import PRODUCERS
from embedlog.user_warnings import warn_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from embedlog.client.producer.record_accumulator import RecordAccumulator
    from embedlog.runtime import Scheduler

    class Closable(Protocol):
        """A producer, as far as its end goes."""

        def close(self, timeout: float | None = None) -> None:
            """Send everything, and wait for it at most `timeout` seconds."""


_LAST_S = 10.0
"""What a producer gets to send the rest: brokers that do not answer must not hold a program."""
_log = Log("client")


class Endings:
    """The ends of one producer that are not its own `close`."""

    def __init__(
        self, producer: Closable, accumulator: RecordAccumulator, scheduler: Scheduler
    ) -> None:
        self._producer = ref(producer)
        self._accumulator = accumulator
        reference = ref(self)

        def end() -> None:
            endings = reference()
            if endings is not None:
                endings.program_ends()

        self.forget: Callable[[], None] = scheduler.at_exit(end, PRODUCERS)
        """The producer was closed."""

    def __del__(self) -> None:
        self.forget()

    def cluster_ends(self) -> None:
        """The cluster of this process is closed: send what is left."""
        self._finish()

    def program_ends(self) -> None:
        """The interpreter ends: say what was forgotten, and send it."""
        count = self._accumulator.record_count()
        if count:
            warn_user(
                f"a producer was not closed: {count} records had no outcome when the program "
                f"ended; they get {_LAST_S:g} s",
                ResourceWarning,
            )
        self._finish()

    def _finish(self) -> None:
        producer = self._producer()
        if producer is None:
            return
        error = attempt(producer.close, _LAST_S)
        if error is not None:
            # A user's callback raised: the cluster or the interpreter still ends.
            _log.error("a producer that nobody closed: %s", error, exc_info=error)
