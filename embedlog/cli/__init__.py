"""The `embedlog` command.

    embedlog serve [--data DIR] [--host HOST] [--port PORT] ...
    embedlog dump PATH        show the content of the files of a data directory
    embedlog verify PATH      find damage
    embedlog tail PATH TOPIC  show the last records, and follow new ones
    embedlog backup PATH TO   copy a directory, open or closed, as of one moment
    embedlog salvage PATH     remove damage, and keep every good batch
    embedlog queue VERB PATH NAME    look at a job queue, and mend it
    embedlog pipeline VERB    fill tables from topics on Spark
    embedlog ctl CALL         make a call of the test kit at `serve --control`

Exit status: 0 on success, 1 if damage was found or `ctl` was refused, or
`queue` did not find a job, 2 with one line on standard
error if the command failed. A traceback is always a defect.

argparse parses `serve`, because loading click would delay it by 28 ms; see `serve`.
"""

from __future__ import annotations

import sys

from embedlog.cli.exit_status import EXIT_CANNOT
from embedlog.errors import EmbedlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (None: `sys.argv`); return the exit status."""
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
    """Return one line with the problem and its object."""
    if isinstance(error, OSError) and error.strerror:
        path = f"{error.filename}: " if error.filename else ""
        return f"{path}{error.strerror}"
    return " ".join(str(error).split())
