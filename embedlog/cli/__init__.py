"""The `embedlog` command.

    embedlog serve [--data DIR] [--host HOST] [--port PORT] ...

Exit status: 0 after a stop that was asked for, 2 with one line on standard error for everything
that cannot be done as asked. A traceback is always a defect.
"""

from __future__ import annotations

from argparse import ArgumentParser
from sys import stderr

from embedlog.cli import serve
from embedlog.errors import EmbedlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = "0.1.0"
EXIT_CANNOT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (None: those of the process); returns the exit status."""
    parser = ArgumentParser(
        prog="embedlog",
        description="A message log with Kafka wire compatibility.",
        formatter_class=serve.help_formatter,
    )
    parser.add_argument("--version", action="version", version=f"embedlog {VERSION}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    serve.add_command(commands)
    parsed = parser.parse_args(arguments)
    try:
        parsed.run(parsed)
    except (EmbedlogError, OSError) as error:
        print(f"embedlog: {describe(error)}", file=stderr)
        return EXIT_CANNOT
    return 0


def describe(error: EmbedlogError | OSError) -> str:
    """One line that says what is wrong and with what."""
    if isinstance(error, OSError) and error.strerror:
        path = f"{error.filename}: " if error.filename else ""
        return f"{path}{error.strerror}"
    return " ".join(str(error).split())
