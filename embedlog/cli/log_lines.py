"""Log lines of `serve` on standard error: their level and format.

    text    2026-01-31 12:00:00,123 WARNING embedlog.storage: ...
    json    {"time": "2026-01-31T11:00:00.123+00:00", "level": "WARNING", "logger": ..., ...}

Loading `logging` takes 7 ms. Unless the user wants more than warnings, the first line loads it.
"""

from __future__ import annotations

from embedlog import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

LEVELS = ("debug", "info", "warning", "error")
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_BY_VERBOSITY = ("warning", "info", "debug")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments for level and format."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="log more than warnings to standard error; -vv: every step",
    )
    chosen.add_argument("-q", "--quiet", action="store_true", help="log errors only")
    chosen.add_argument(
        "--log-level",
        type=str.lower,
        choices=LEVELS,
        metavar="LEVEL",
        help=f"the least important lines to log: {', '.join(LEVELS)}",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="how to log: lines of text, or one JSON object a line",
    )


def level_of(arguments: Namespace) -> str:
    """Return the chosen level, one of `LEVELS`."""
    if arguments.log_level is not None:
        return str(arguments.log_level)
    if arguments.quiet:
        return "error"
    return _BY_VERBOSITY[min(arguments.verbose, len(_BY_VERBOSITY) - 1)]


def begin(arguments: Namespace) -> Callable[[], None]:
    """Print log lines from here on, as chosen; return a function for the end of the program."""
    level, is_json = level_of(arguments).upper(), arguments.log_format == "json"

    def configure() -> None:
        import logging

        handler = logging.StreamHandler()
        handler.setFormatter(_json_formatter() if is_json else logging.Formatter(_TEXT))
        logging.basicConfig(level=level, handlers=(handler,), force=True)

    if level in ("INFO", "DEBUG"):
        configure()
        return lambda: None
    return logger.before_first_line(configure)


def _json_formatter() -> logging.Formatter:
    from datetime import UTC, datetime
    from json import dumps
    from logging import Formatter, LogRecord

    class JsonFormatter(Formatter):
        def format(self, record: LogRecord) -> str:
            time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
            line = {
                "time": time,
                "level": record.levelname,
                "logger": record.name,
                "message": record.getMessage(),
            }
            if record.exc_info:
                line["exception"] = self.formatException(record.exc_info)
            return dumps(line)

    return JsonFormatter()
