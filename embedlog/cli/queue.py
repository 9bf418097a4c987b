"""`embedlog queue`: look at a job queue, and mend it.

    embedlog queue stats data mails             numbers
    embedlog queue peek data mails              the next jobs; none is locked
    embedlog queue put data mails '{"to": "a@b.c"}' --parse-json
    embedlog queue dead data mails              jobs that were given up, and why
    embedlog queue redrive data mails ID...     put them into the queue again; --all
    embedlog queue drop data mails ID...        remove them for ever; --all
    embedlog queue cancel data mails ID...      remove delayed jobs and cron jobs

PATH is a data directory, open or not, or an address "host:port". Exit status: 0 after success, 1 if
a job that was named is not there, 2 if the command failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from embedlog.cli.exit_status import EXIT_REFUSED
from embedlog.cli.queue_place import opened
from embedlog.cli.text import printable, text_of

if TYPE_CHECKING:
    from embedlog import DeadJob, JobRecord, Queue

_PUT_AT_ONCE = 500
_PLACE = [
    click.Argument(["path"], metavar="PATH"),
    click.Argument(["name"], metavar="NAME"),
]
_TIMEOUT = click.Option(
    ["--timeout"], type=click.FloatRange(min=0), default=10.0, show_default=True,
    help="seconds to wait for a broker that answers",
)  # fmt: skip
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="one JSON object a line")
_IDS = click.Argument(["ids"], metavar="[ID...]", nargs=-1)
_ALL = click.Option(["--all", "every"], is_flag=True, help="all dead jobs")


def command() -> click.Group:
    """Return the group of verbs."""
    return click.Group(
        "queue",
        commands={str(verb.name): verb for verb in (stats, peek, put, dead, redrive, drop, cancel)},
        help="Look at the job queue NAME in the directory or at the address PATH, and mend it.",
    )


@click.command(params=[*_PLACE, _JSON, _TIMEOUT])
def stats(path: str, name: str, *, as_json: bool, timeout: float) -> None:
    """Show how many jobs are not done, delayed and dead, and the age of the oldest.

    Brokers do not tell another process how many of the jobs that are not done are locked.
    """
    with opened(path, name, timeout) as queue:
        found = queue.stats()
    numbers = {
        "undone": found.ready + found.locked,
        "delayed": found.delayed,
        "dead": found.dead,
        "oldest_s": found.oldest_s,
    }
    if as_json:
        click.echo(json.dumps({"queue": name, **numbers}))
        return
    age = "" if found.oldest_s is None else f"; the oldest is {_age(found.oldest_s)} old"
    undone = numbers["undone"]
    click.echo(f"{name}: {undone} ready or locked, {found.delayed} delayed, {found.dead} dead{age}")


@click.command(
    params=[
        *_PLACE,
        click.Option(["-n", "--jobs", "count"], type=click.IntRange(min=1), default=10,
                     show_default=True, help="jobs to show"),
        _JSON,
        _TIMEOUT,
    ]
)  # fmt: skip
def peek(path: str, name: str, *, count: int, as_json: bool, timeout: float) -> None:
    """Show the next jobs, and lock none. Jobs that a worker has are among them."""
    with opened(path, name, timeout) as queue:
        jobs = queue.peek(count)
    for job in jobs:
        fields = {**_fields(job), "put_at": _moment(job.put_at_ms), "value": _value(job)}
        _show(fields, as_json)


@click.command(
    params=[
        *_PLACE,
        click.Option(["--values"], is_flag=True, help="also show the values"),
        _JSON,
        _TIMEOUT,
    ]
)
def dead(path: str, name: str, *, values: bool, as_json: bool, timeout: float) -> None:
    """Show the jobs that were given up: id, deliveries, when and why."""
    with opened(path, name, timeout) as queue:
        jobs = list(queue.dead)
    for job in jobs:
        fields = _fields(job)
        if job.last_error == job.reason:
            del fields["error"]
        fields |= {
            "deliveries": job.deliveries,
            "died_at": _moment(job.died_at_ms),
            "reason": job.reason,
        }
        if values:
            fields["value"] = _value(job)
        _show(fields, as_json)


@click.command(params=[*_PLACE, _IDS, _ALL, _JSON, _TIMEOUT])
def redrive(path: str, name: str, **given: Any) -> int:
    """Put dead jobs into the queue again, as new ones: the jobs ID, or --all."""
    return _leave(path, name, "redriven", lambda queue, ids: queue.dead.redrive(ids), **given)


@click.command(params=[*_PLACE, _IDS, _ALL, _JSON, _TIMEOUT])
def drop(path: str, name: str, **given: Any) -> int:
    """Remove dead jobs for ever: the jobs ID, or --all."""
    return _leave(path, name, "dropped", lambda queue, ids: queue.dead.drop(ids), **given)


def _leave(
    path: str,
    name: str,
    word: str,
    leave: Callable[[Queue, list[str | DeadJob] | None], int],
    *,
    ids: tuple[str, ...],
    every: bool,
    as_json: bool,
    timeout: float,
) -> int:
    if bool(ids) == every:
        raise click.UsageError("give ids of dead jobs, or --all")
    with opened(path, name, timeout) as queue:
        known = set() if every else {job.id for job in queue.dead}
        count = leave(queue, None if every else list(ids))
    if as_json:
        click.echo(json.dumps({word: count}))
    else:
        click.echo(f"{count} {'job' if count == 1 else 'jobs'} {word}")
    missing = [each for each in dict.fromkeys(ids) if each not in known]
    for each in missing:
        click.echo(f"embedlog: {name!r} has no dead job {each!r}", err=True)
    return EXIT_REFUSED if missing else 0


@click.command(params=[*_PLACE, click.Argument(["ids"], metavar="ID...", nargs=-1, required=True),
                       _TIMEOUT])  # fmt: skip
def cancel(path: str, name: str, *, ids: tuple[str, ...], timeout: float) -> None:
    """Remove the delayed jobs or cron jobs ID. A job that is ready already stays."""
    with opened(path, name, timeout) as queue:
        for each in ids:
            queue.cancel(each)


@click.command(
    params=[
        *_PLACE,
        click.Argument(["value"], metavar="[VALUE]", required=False),
        click.Option(["--parse-json", "is_json"], is_flag=True,
                     help="the value is JSON: workers get the object"),
        click.Option(["--key"], help="the job's key"),
        click.Option(["--priority"], type=int, default=0, show_default=True, help="0 is lowest"),
        click.Option(["--delay"], type=float, metavar="SECONDS", help="ready after this time"),
        click.Option(["--cron"], metavar="EXPRESSION", help="a job each time; in UTC"),
        click.Option(["--id"], help="the job's id; replaces a delayed job of this id"),
        click.Option(["--dedupe"], metavar="TEXT", help="no second job of this text in 300 s"),
        click.Option(["--create"], is_flag=True, help="make the queue if there is none"),
        _JSON,
        _TIMEOUT,
    ]
)  # fmt: skip
def put(
    path: str,
    name: str,
    *,
    value: str | None,
    is_json: bool,
    create: bool,
    as_json: bool,
    timeout: float,
    **given: Any,
) -> None:
    """Put a job; show its id. Without VALUE, put a job for each line of standard input."""
    options = {word: each for word, each in given.items() if each not in (None, 0)}
    lines: Iterable[str] = _lines() if value is None else [value]
    with ExitStack() as stack:
        queue = stack.enter_context(opened(path, name, timeout, create=create))
        values = (_parsed(line, is_json=is_json) for line in lines)
        try:
            for made in _put(queue, values, options):
                click.echo(json.dumps({"id": made}) if as_json else made)
        except (TypeError, ValueError) as error:
            raise click.UsageError(str(error)) from None


def _put(queue: Queue, values: Iterator[Any], options: dict[str, Any]) -> Iterator[str]:
    if options.keys() <= {"key", "priority"}:
        while chunk := list(islice(values, _PUT_AT_ONCE)):
            yield from queue.put_many(chunk, **options)
        return
    for value in values:
        yield queue.put(value, **options)


def _lines() -> Iterator[str]:
    for line in sys.stdin:
        yield line.rstrip("\n")


def _parsed(text: str, *, is_json: bool) -> Any:
    if not is_json:
        return text.encode("utf-8", "surrogateescape")
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no JSON: {error}") from None


# Showing


def _fields(job: JobRecord) -> dict[str, Any]:
    """Return the facts that ready and dead jobs have; those without a value are left out."""
    fields = {
        "id": job.id,
        "key": text_of(job.key),
        "failures": job.failures or None,
        "error": job.last_error,
    }
    return {word: each for word, each in fields.items() if each is not None}


def _value(job: JobRecord) -> Any:
    """Return the value: an object of JSON, or text."""
    try:
        value = job.value
    except ValueError:  # another program wrote the record
        value = job.raw
    return text_of(value) if isinstance(value, bytes | None) else value


def _show(fields: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(fields, ensure_ascii=False))
        return
    texts = [
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
        for each in fields.values()
    ]
    first, *rest = zip(fields, texts, strict=True)
    line = "  ".join([first[1], *(f"{word}={text}" for word, text in rest)])
    click.echo(printable(line))


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"
