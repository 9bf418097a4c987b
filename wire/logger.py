"""`NamedLogger`: a logger that loads `logging` only when somebody can see the line."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Logger

_DEBUG = 10
_INFO = 20


class NamedLogger:
    """The calls of `logging.Logger` that are used here.

    An application that has not imported `logging` (7 ms) cannot have asked for DEBUG or INFO.
    These are dropped then, without importing it.
    """

    __slots__ = ("_logger", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._logger: Logger | None = None

    def debug(self, message: str, *values: object) -> None:
        """Log at DEBUG; `values` are formatted into `message` only if it is wanted."""
        logger = self._logger_of(_DEBUG)
        if logger is not None:
            logger.debug(message, *values, stacklevel=2)

    def info(self, message: str, *values: object) -> None:
        """Log at INFO; `values` are formatted into `message` only if it is wanted."""
        logger = self._logger_of(_INFO)
        if logger is not None:
            logger.info(message, *values, stacklevel=2)

    def warning(self, message: str, *values: object, exc_info: BaseException | None = None) -> None:
        """Log at WARNING, with the traceback of `exc_info` if given."""
        logger = self._load()
        if logger is None:
            _print(message, values)
        else:
            logger.warning(message, *values, exc_info=exc_info, stacklevel=2)

    def error(self, message: str, *values: object, exc_info: BaseException | None = None) -> None:
        """Log at ERROR, with the traceback of `exc_info` if given."""
        logger = self._load()
        if logger is None:
            _print(message, values)
        else:
            logger.error(message, *values, exc_info=exc_info, stacklevel=2)

    @property
    def wants_debug(self) -> bool:
        """Is DEBUG seen by anybody? For what is costly to put together."""
        return self._logger_of(_DEBUG) is not None

    def _logger_of(self, level: int) -> Logger | None:
        """The logger if it takes lines of `level`."""
        logger = self._logger
        if logger is None:
            if "logging" not in sys.modules:
                return None
            logger = self._load()
        return logger if logger is not None and logger.isEnabledFor(level) else None

    def _load(self) -> Logger | None:
        """The logger; None when `logging` cannot be loaded, as without a descriptor left."""
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
    """What is worth a warning is said all the same: a line must never make its caller fail."""
    try:
        print(message % values, file=sys.stderr)
    except (OSError, ValueError, AttributeError):
        return  # nor is there a standard error


_before: list[Callable[[], None]] = []


def before_first_line(configure: Callable[[], None]) -> None:
    """Have `configure()` called once `logging` is loaded, before anything is logged.

    For a program that wants to see warnings, and does not pay for `logging` until there is one.
    """
    _before.append(configure)
