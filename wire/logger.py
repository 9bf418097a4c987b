"""`NamedLogger`: a logger that imports `logging` only for a line that will be shown."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Logger

    Observer = Callable[[str, int, str, tuple[object, ...]], None]

_DEBUG = 10
_INFO = 20
_WARNING = 30
_ERROR = 40


class NamedLogger:
    """A logger with the methods of `logging.Logger` that this project uses.

    An application that has not imported `logging` (7 ms) cannot have configured DEBUG or INFO:
    those lines are dropped without importing it.
    """

    __slots__ = ("_logger", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._logger: Logger | None = None

    def debug(self, message: str, *values: object) -> None:
        """Log at DEBUG; `values` are formatted into `message` only if a handler sees the line."""
        if _observers:
            self._tell(_DEBUG, message, values)
        logger = self._logger_of(_DEBUG)
        if logger is not None:
            logger.debug(message, *values, stacklevel=2)

    def info(self, message: str, *values: object) -> None:
        """Log at INFO, as `debug` does."""
        if _observers:
            self._tell(_INFO, message, values)
        logger = self._logger_of(_INFO)
        if logger is not None:
            logger.info(message, *values, stacklevel=2)

    def warning(self, message: str, *values: object, exc_info: BaseException | None = None) -> None:
        """Log at WARNING, with the traceback of `exc_info` if given."""
        if _observers:
            self._tell(_WARNING, message, values)
        logger = self._load()
        if logger is None:
            _print(message, values)
        else:
            logger.warning(message, *values, exc_info=exc_info, stacklevel=2)

    def error(self, message: str, *values: object, exc_info: BaseException | None = None) -> None:
        """Log at ERROR, with the traceback of `exc_info` if given."""
        if _observers:
            self._tell(_ERROR, message, values)
        logger = self._load()
        if logger is None:
            _print(message, values)
        else:
            logger.error(message, *values, exc_info=exc_info, stacklevel=2)

    def _tell(self, level: int, message: str, values: tuple[object, ...]) -> None:
        for observer in _observers:
            observer(self.name, level, message, values)

    def _logger_of(self, level: int) -> Logger | None:
        """Return the logger if it is enabled for `level`."""
        logger = self._logger
        if logger is None:
            if "logging" not in sys.modules:
                return None
            logger = self._load()
        return logger if logger is not None and logger.isEnabledFor(level) else None

    def _load(self) -> Logger | None:
        """Import `logging` and return the logger; None if the import fails.

        It fails if the process has no file descriptors left, for example.
        """
        logger = self._logger
        if logger is None:
            try:
                import logging

                while _before:
                    _before.pop()()
            except (OSError, ImportError, MemoryError):
                return None
            logger = self._logger = logging.getLogger(self.name)
        return logger


def _print(message: str, values: tuple[object, ...]) -> None:
    """Print a warning without `logging`. Never raises: a log line must not break its caller."""
    try:
        print(message % values, file=sys.stderr)
    except (OSError, ValueError, AttributeError):
        return  # standard error is missing or broken as well


_observers: tuple[Observer, ...] = ()


def observe(observer: Observer) -> Callable[[], None]:
    """Call `observer(name, level, message, values)` for each line of every level of this process.

    It gets the lines whatever the program's configuration of `logging` is. It is called in the
    thread of the line, maybe with locks held: it must be short, and must not raise. The returned
    function ends the observation.
    """
    global _observers  # noqa: PLW0603
    _observers = (*_observers, observer)

    def end() -> None:
        global _observers  # noqa: PLW0603
        _observers = tuple(each for each in _observers if each is not observer)

    return end


_before: list[Callable[[], None]] = []


def before_first_line(configure: Callable[[], None]) -> Callable[[], None]:
    """Call `configure()` after `logging` is imported and before the first line is logged.

    For a program that wants to show warnings, but to import `logging` only when there is a warning.
    The returned function takes the order back, if no line has been logged.
    """
    _before.append(configure)

    def take_back() -> None:
        if configure in _before:
            _before.remove(configure)

    return take_back
