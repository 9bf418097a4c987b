"""The `embedlog` command.

    embedlog serve [--data DIR] [--host HOST] [--port PORT] ...
    embedlog dump PATH        what the files of a data directory hold
    embedlog verify PATH      is anything damaged?
    embedlog tail PATH TOPIC  the last records, and those to come
    embedlog salvage PATH     takes damage out, and keeps every good batch
    embedlog pipeline VERB    from topics to tables on Spark

Exit status: 0 when all was done as asked, 1 for damage that was found, 2 with one line on standard
error for everything that cannot be done. A traceback is always a defect.

`serve` answers before click would be loaded (28 ms), so it is parsed by argparse; see `serve`.
"""

from __future__ import annotations

import sys

from embedlog.cli.exit_status import EXIT_CANNOT
from embedlog.errors import EmbedlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (None: those of the process); returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == ["serve"]:
            from embedlog.cli import serve

            return serve.main(given)
        from embedlog.cli import commands

        return commands.main(given)
    except (EmbedlogError, OSError) as error:
        print(f"embedlog: {describe(error)}", file=sys.stderr)
        return EXIT_CANNOT


def describe(error: EmbedlogError | OSError) -> str:
    """One line that says what is wrong and with what."""
    if isinstance(error, OSError) and error.strerror:
        path = f"{error.filename}: " if error.filename else ""
        return f"{path}{error.strerror}"
    return " ".join(str(error).split())
