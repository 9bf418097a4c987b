"""PySpark's daemon of Python workers, without the tracebacks of workers whose reader has left.

Spark closes the pipe of a worker once it needs no more rows of it, such as for a `limit` or after a
task was cancelled. The worker then fails to flush, and PySpark prints a traceback that reads like a
failure. `spark_session` runs this module as `spark.python.daemon.module`.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from pyspark import daemon

_LEFT = (BrokenPipeError, ConnectionResetError)


class QuietTraceback:
    """The module `traceback`, except that `print_exc` omits errors of a closed pipe."""

    def __getattr__(self, name: str) -> Any:
        if name == "print_exc" and isinstance(sys.exc_info()[1], _LEFT):
            return lambda: None
        return getattr(traceback, name)


if __name__ == "__main__":
    daemon.traceback = QuietTraceback()  # type: ignore[assignment, attr-defined]
    daemon.manager()
