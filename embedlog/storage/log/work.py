"""Recurring work on the logs, one of which may refuse it without harm to the others."""

from __future__ import annotations

from embedlog.errors import CorruptRecord, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.storage.log.log import Log


class LogWork:
    """Does one piece of work after the other. `logs()` are those that are loaded."""

    __slots__ = ("logs", "refusal")

    def __init__(self, logs: Callable[[], Sequence[Log]]) -> None:
        self.logs = logs
        self.refusal: Exception | None = None
        """What the disk refused to the work of this moment, for some log."""

    def on_each(self, work: Callable[[Log], object]) -> None:
        """Work on every log that is sound, under its lock."""
        for log in self.logs():
            if log.failure is None:
                with log.lock:
                    self.on(log, work)

    def on(self, log: Log, work: Callable[[Log], object]) -> None:
        """Work on one log. What harms it for good it has noted itself; it goes on after the rest,
        a full disk or a lack of descriptors.
        """
        try:
            work(log)
        except KafkaError as error:
            self.refusal = error
        except CorruptRecord as error:
            log.health.poison(error)
