"""All commands but `serve`, declared with click. Each runs in the file of its name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TextIO

import click

from embedlog.cli import pipeline, queue
from embedlog.cli.exit_status import EXIT_CANNOT
from embedlog.version import __version__

_TOPIC = click.Option(["--topic"], metavar="TOPIC", help="this topic only")
_PARTITION = click.Option(["--partition"], metavar="N", type=int, help="this partition only")
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="one JSON object a line")
_PATH = click.Argument(["path"], metavar="PATH")


def main(arguments: list[str]) -> int:
    """Run a command; return the exit status."""
    try:
        status = _group().main(arguments, prog_name="embedlog", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return EXIT_CANNOT
    except click.ClickException as error:
        click.echo(f"embedlog: {' '.join(error.format_message().split())}", err=True)
        return EXIT_CANNOT
    except click.Abort:
        return 130
    return int(status or 0)


def _lazily(name: str) -> Callable[..., int]:
    """Return a function that loads the command's file and calls its `run`."""

    def run(**arguments: Any) -> int:
        module = __import__(f"embedlog.cli.{name}", fromlist=("run",))
        try:
            status: int = module.run(**arguments)
            sys.stdout.flush()
        except BrokenPipeError:
            # The program that reads the output, such as `head`, has closed it.
            sys.stdout = _Unheard(sys.stdout)
            return 0
        return status

    return run


class _Unheard:
    """Replaces a closed standard output, to ignore the flush that Python makes at its exit."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream  # kept alive: its finalizer would fail

    def flush(self) -> None:
        """Do nothing."""


def _group() -> click.Group:
    # argparse parses `serve`: this entry only adds it to the list of commands.
    serve = click.Command("serve", help="Serve a log to Kafka clients.")
    commands = [
        *(serve, _dump(), _verify(), _tail(), _backup(), _salvage(), _ctl()),
        *(pipeline.command(), queue.command()),
    ]
    group = click.Group(
        "embedlog",
        commands={str(command.name): command for command in commands},
        help="A message log with Kafka wire compatibility.",
    )
    show_version = click.version_option(
        __version__, message="embedlog %(version)s", help="show the version and exit"
    )
    return show_version(group)


def _dump() -> click.Command:
    return click.Command(
        "dump",
        callback=_lazily("dump"),
        help="Show the files of a data directory, batch by batch. Records of internal topics are "
        "decoded. Exit status 1 if a file is damaged.",
        params=[
            _PATH,
            _TOPIC,
            _PARTITION,
            click.Option(["--offset"], type=int, default=0, help="batches from this offset on"),
            click.Option(["--records"], is_flag=True, help="also show the records of each batch"),
            click.Option(
                ["--files"], is_flag=True, help="also show indexes, snapshots, checkpoints, epochs"
            ),
            _JSON,
        ],
    )


def _verify() -> click.Command:
    return click.Command(
        "verify",
        callback=_lazily("verify"),
        help="Check every checksum and rule of every file; change nothing. Exit status 0 if all "
        "files are sound, 1 with a line for each damage, 2 if the directory cannot be read.",
        params=[_PATH, _TOPIC, _PARTITION, _JSON],
    )


def _tail() -> click.Command:
    return click.Command(
        "tail",
        callback=_lazily("tail"),
        help="Show the last records of a topic, even while another process writes it.",
        params=[
            _PATH,
            click.Argument(["topic"], metavar="TOPIC"),
            _PARTITION,
            click.Option(["-n", "--records", "count"], type=int, default=10, show_default=True,
                         help="records of each partition"),
            click.Option(["--from-beginning"], is_flag=True, help="all records"),
            click.Option(["-f", "--follow"], is_flag=True, help="wait for new records"),
            click.Option(["--committed"], is_flag=True, help="show only committed records"),
            _JSON,
        ],
    )  # fmt: skip


def _backup() -> click.Command:
    return click.Command(
        "backup",
        callback=_lazily("backup"),
        help="Copy a data directory of one or several brokers to the new directory TO, as of one "
        "moment, while a process writes it or none has it open.",
        params=[
            _PATH,
            click.Argument(["target"], metavar="TO"),
            click.Option(["--timeout"], type=click.FloatRange(min=0), default=30.0,
                         show_default=True, help="seconds to wait for the moment"),
            _JSON,
        ],
    )  # fmt: skip


def _salvage() -> click.Command:
    return click.Command(
        "salvage",
        callback=_lazily("salvage"),
        help="Remove damage from logs: every good batch keeps its offset. Nothing is lost: a "
        "segment is copied to a quarantine file before it is rewritten. No process may have the "
        "directory open.",
        params=[
            _PATH,
            _TOPIC,
            _PARTITION,
            click.Option(
                ["--dry-run"],
                is_flag=True,
                help="only report the kept and lost offsets; exit status 1 if a log is damaged",
            ),
        ],
    )


def _ctl() -> click.Command:
    return click.Command(
        "ctl",
        callback=_lazily("ctl"),
        help="Make a call of the test kit at a control door (`embedlog serve --control`), such as "
        "`fault add Produce --error NOT_ENOUGH_REPLICAS`. Without a call, list all calls; "
        "CALL --help explains one. Exit status 1 if the door refuses the "
        "call, 2 if the call is wrong or nothing answers.",
        params=[
            click.Option(["--url"], envvar="EMBEDLOG_CONTROL_URL", default="http://127.0.0.1:9099",
                         show_default=True, help="address of the control door"),
            click.Option(["--token"], envvar="EMBEDLOG_CONTROL_TOKEN", help="its token"),
            click.Option(["--json", "as_json"], is_flag=True,
                         help="print the result as one JSON value"),
            click.Argument(["words"], metavar="[CALL [VALUE...]]", nargs=-1,
                           type=click.UNPROCESSED),
        ],
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )  # fmt: skip
