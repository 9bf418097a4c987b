"""`Logger`: one part's logger.

    log = Logger("storage")                                # the logger "embedlog.storage"
    log.info("topic %s was deleted", name)

Names by part: `embedlog.storage`, `.broker`, `.listener`, `.controller`, `.group`, `.client`.

ERROR: data was lost, or something stopped working and stays so. WARNING: somebody should look.
INFO: what an operator wants to know afterwards. DEBUG: every step. No handler is installed. Without
one Python prints warnings and errors to standard error, and that is meant: nobody should have to
configure logging to learn of a failing disk.

Nothing is logged for each record or request. A line must not be logged under a partition lock
unless it tells of a failure: a handler may do anything, even send the line to this very log.
"""

from __future__ import annotations

from wire.logs import NamedLog, before_first_line

__all__ = ["Logger", "before_first_line"]


class Logger(NamedLog):
    """The logger of one part of embedlog."""

    __slots__ = ()

    def __init__(self, part: str) -> None:
        super().__init__(f"embedlog.{part}")
