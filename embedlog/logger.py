"""`Logger`: the logger of one part of embedlog.

    log = Logger("storage")                                # the logger "embedlog.storage"
    log.info("topic %s was deleted", name)

Names by part: `embedlog.storage`, `.broker`, `.listener`, `.controller`, `.group`, `.client`.

ERROR: data was lost, or a part stopped working for good. WARNING: an operator should look. INFO:
facts that an operator wants to find later. DEBUG: every step. embedlog installs no handler. Without
a handler Python prints warnings and errors to standard error, which is intended: a user shall learn
of a failing disk without configuring logging.

No line is logged per record or request. Under a partition lock only failures are logged: a handler
may be slow. A handler that calls embedlog gets NestedCall.
"""

from __future__ import annotations

from wire.logger import NamedLogger, before_first_line, observe

__all__ = ["Logger", "before_first_line", "observe"]


class Logger(NamedLogger):
    """The logger of one part of embedlog."""

    __slots__ = ()

    def __init__(self, part: str) -> None:
        super().__init__(f"embedlog.{part}")
