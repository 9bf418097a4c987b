"""`embedlog pipeline`: the verbs over a project file.

Exit status: 0 success; 1 a rule with the action `fail` was broken, there are more dead letters than
`dead_letters.limit`, or the lag is greater than `metrics.max_lag_records`; 2 the command failed;
3 Spark's query failed; 130 stopped by a second signal.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager, nullcontext
from signal import SIG_DFL, SIGINT, SIGTERM, signal

import click

from embedlog.cli import archiving, maintenance
from embedlog.cli.jobs import JSON, MASTER, spark_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from embedlog.spark.pipeline.batch.report import BatchReport, Totals
    from embedlog.spark.pipeline.project import Project
    from embedlog.spark.pipeline.running.metrics import Progress
    from embedlog.spark.pipeline.running.runner import Runner

EXIT_ALERT = 1
EXIT_QUERY = 3


def command() -> click.Group:
    """Return the group of verbs."""
    verbs = [
        _init(),
        _validate(),
        _dry_run(),
        _run(),
        _status(),
        _replaying("replay", "Read records again, and replace their rows in the tables."),
        _replaying("backfill", "Fill tables from the past: from the topics, or from an archive."),
        _redrive(),
        *archiving.commands(),
        *maintenance.commands(),
    ]
    return click.Group(
        "pipeline",
        commands={str(verb.name): verb for verb in verbs},
        help="Pipelines from topics to tables on Spark, exactly once. PROJECT is a project file, "
        "or a directory with a pipeline.toml.",
    )


_PROJECT = click.Argument(["project"], metavar="PROJECT", default=".")


def _init() -> click.Command:
    return click.Command(
        "init",
        callback=init,
        help="Write a project to DIRECTORY, with a schema inferred from the last records.",
        params=[
            click.Argument(["directory"], metavar="DIRECTORY"),
            click.Option(["--name"], help="name of the pipeline; default: the first topic"),
            click.Option(["--path"], help="data directory of the log"),
            click.Option(["--bootstrap-servers"], help="or the address of a cluster"),
            click.Option(["--topic", "topics"], multiple=True, help="may come several times"),
            click.Option(["--envelope"], type=click.Choice(["none", "debezium"]), default="none"),
            click.Option(["--sample"], type=click.IntRange(min=1), default=1000,
                         show_default=True, help="infer from this many records"),
            click.Option(["--widen"], is_flag=True,
                         help="add new columns to the schema of an existing project"),
        ],
    )  # fmt: skip


def _validate() -> click.Command:
    return click.Command(
        "validate",
        callback=validate,
        help="Check a project file, the files it names, and its SQL.",
        params=[
            _PROJECT,
            MASTER,
            click.Option(["--no-spark"], is_flag=True, help="do not check the SQL; needs no JVM"),
        ],
    )


def _dry_run() -> click.Command:
    return click.Command(
        "dry-run",
        callback=dry_run,
        help="Show the rows that the last records would give; nothing is written.",
        params=[
            _PROJECT,
            MASTER,
            click.Option(["-n", "--records", "count"], type=click.IntRange(min=1), default=1000,
                         show_default=True, help="read this many records"),
        ],
    )  # fmt: skip


def _run() -> click.Command:
    return click.Command(
        "run",
        callback=run,
        help="Run until all present records are written, or for ever, as the trigger of the "
        "project says. SIGINT and SIGTERM finish the current batch; a second one ends at once.",
        params=[
            _PROJECT,
            MASTER,
            click.Option(
                ["--once"], is_flag=True, help="ignore the trigger: write present records and end"
            ),
            JSON,
        ],
    )


def _status() -> click.Command:
    return click.Command(
        "status",
        callback=status,
        help="Show totals, rules, dead letters and lag. Exit status 1 if a limit is exceeded.",
        params=[_PROJECT, JSON],
    )


def _replaying(name: str, text: str) -> click.Command:
    return click.Command(
        name,
        callback=replay,
        help=text + " A second run changes nothing. The range ends where the stream is; topics are "
        "left alone.",
        params=[
            _PROJECT,
            MASTER,
            click.Option(["--from-offsets"], help='such as {"orders":{"0":100}}; other partitions '
                         "are skipped"),
            click.Option(["--to-offsets"], help="the same, exclusive"),
            click.Option(["--from-time"], help="ISO 8601, or milliseconds since 1970"),
            click.Option(["--to-time"], help="the same, exclusive"),
            click.Option(["--key", "keys"], multiple=True, help="records of these keys only"),
            click.Option(["--archive"], help="read this Parquet table and not the topics"),
            click.Option(["--into"], help="a directory for tables of a new version"),
        ],
    )  # fmt: skip


def _redrive() -> click.Command:
    return click.Command(
        "redrive",
        callback=redrive,
        help="Try dead letters again. A record that fails again stays a dead letter.",
        params=[
            _PROJECT,
            MASTER,
            click.Option(["--where"], default="true", help="SQL over the columns of the letters, "
                         "such as \"error_stage = 'schema'\""),
            click.Option(["--limit"], type=click.IntRange(min=1),
                         help="at most this many, the oldest first"),
        ],
    )  # fmt: skip


def init(
    directory: str,
    *,
    name: str | None,
    path: str | None,
    bootstrap_servers: str | None,
    topics: tuple[str, ...],
    envelope: str,
    sample: int,
    widen: bool,
) -> int:
    """Write a project, or widen its schema."""
    from embedlog.spark.pipeline import load
    from embedlog.spark.pipeline.commands import verbs
    from embedlog.spark.pipeline.project import PipelineSource

    if widen:
        changed = verbs.widen(load(directory), sample)
        click.echo(f"widened: {', '.join(changed)}" if changed else "nothing new")
        return 0
    if not topics or (path is None) == (bootstrap_servers is None):
        raise click.UsageError("--topic, and one of --path and --bootstrap-servers, are needed")
    options = {"kafka.bootstrap.servers": bootstrap_servers} if bootstrap_servers else {}
    source = PipelineSource("embedlog", topics, path, options)
    file = verbs.init(
        directory, name=name or topics[0], source=source, envelope=envelope, sample=sample
    )
    click.echo(f"wrote {file}")
    return 0


def validate(project: str, master: str | None, no_spark: bool) -> int:
    """Check a project."""
    from embedlog.spark.pipeline import load
    from embedlog.spark.pipeline.commands import verbs

    loaded = load(project)
    with nullcontext() if no_spark else spark_session(loaded.name, master) as spark:
        for line in verbs.validate(loaded, spark):
            click.echo(line)
    return 0


def dry_run(project: str, master: str | None, count: int) -> int:
    """Print rows and rejects."""
    from embedlog.spark.pipeline import load
    from embedlog.spark.pipeline.commands import verbs

    loaded = load(project)
    with spark_session(loaded.name, master) as spark:
        found = verbs.dry_run(loaded, spark, count)
    for sink, rows in found.rows.items():
        for row in rows:
            click.echo(json.dumps({"sink": sink, "row": row}, default=_plain))
    for letter in found.dead_letters:
        click.echo(json.dumps({"rejected": letter}, default=_plain))
    click.echo(json.dumps({"report": found.report}))
    return 0


def run(project: str, master: str | None, once: bool, as_json: bool) -> int:
    """Run a pipeline."""
    from embedlog.spark.pipeline import load
    from embedlog.spark.pipeline.running.runner import Runner, check_state

    loaded = load(project)
    check_state(loaded)
    with spark_session(loaded.name, master) as session, _shown(as_json) as (on_batch, on_progress):
        runner = Runner(session, loaded, on_batch=on_batch, on_progress=on_progress)
        _stop_on_signal(runner.stop)
        return _exit_status(loaded, runner, once=once, as_json=as_json)


def _exit_status(project: Project, runner: Runner, *, once: bool, as_json: bool) -> int:
    from embedlog.spark.pipeline.errors import PipelineFailed, QualityFailed

    try:
        totals = runner.run(available_now=True if once else None)
    except QualityFailed as error:
        click.echo(f"embedlog: {error}", err=True)
        return EXIT_ALERT
    except PipelineFailed as error:
        click.echo(f"embedlog: {error}", err=True)
        return EXIT_QUERY
    if not as_json:
        _show_totals(totals)
    return _alert(project, totals.dead)


def status(project: str, as_json: bool) -> int:
    """Print the state of a pipeline."""
    from embedlog.spark.pipeline import load
    from embedlog.spark.pipeline.batch.report import Totals
    from embedlog.spark.pipeline.commands import verbs

    loaded = load(project)
    found = verbs.status(loaded)
    totals = Totals.from_dict(found["totals"]) if "totals" in found else Totals()
    progress = found["progress"]
    if as_json:
        click.echo(json.dumps(found))
    else:
        _show_totals(totals)
        if progress:
            click.echo(f"lag: {progress['lag_records']} records, {progress['lag_seconds']} s")
    status = _alert(loaded, totals.dead)
    limit = loaded.max_lag_records
    if limit is not None and progress and progress["lag_records"] > limit:
        click.echo(f"embedlog: lag {progress['lag_records']}, {limit} are allowed", err=True)
        status = EXIT_ALERT
    return status


def replay(project: str, master: str | None, into: str | None, **wanted: Any) -> int:
    """Replay or backfill a range."""
    from embedlog.spark.pipeline import load
    from embedlog.spark.pipeline.running.replay import Replayer, ReplayRange, skipped_sinks

    loaded = load(project)
    with spark_session(loaded.name, master) as spark:
        report = Replayer(spark, loaded, into=into).replay(ReplayRange(**wanted))
    for name in skipped_sinks(loaded):
        click.echo(f"left alone: {name}", err=True)
    click.echo(json.dumps(report.as_dict()))
    return 0


def redrive(project: str, master: str | None, where: str, limit: int | None) -> int:
    """Redrive dead letters."""
    from embedlog.spark.pipeline import load
    from embedlog.spark.pipeline.running.replay import Replayer

    loaded = load(project)
    with spark_session(loaded.name, master) as spark:
        report = Replayer(spark, loaded).redrive(where, limit)
    click.echo(json.dumps(report.as_dict()))
    return 0


def _stop_on_signal(stop: Callable[[], None]) -> None:
    def on_signal(*_: object) -> None:
        for number in (SIGINT, SIGTERM):
            signal(number, SIG_DFL)
        stop()

    for number in (SIGINT, SIGTERM):
        signal(number, on_signal)


@contextmanager
def _shown(
    as_json: bool,
) -> Iterator[tuple[Callable[[BatchReport], None], Callable[[Progress], None]]]:
    """Yield callbacks that show batches and progress: as JSON lines, as a bar, or not at all."""
    if as_json:
        yield lambda batch: click.echo(json.dumps(batch.as_dict())), lambda progress: None
        return
    if not sys.stderr.isatty():
        yield lambda batch: None, lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("records"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("records", total=None, rate="")
        done = 0

        def on_batch(batch: BatchReport) -> None:
            nonlocal done
            done += batch.read
            bar.update(task, completed=done)

        def on_progress(progress: Progress) -> None:
            total = done + progress.lag_records if progress.lag_records >= 0 else None
            bar.update(task, total=total, rate=f"{progress.rows_per_second:.0f}/s")

        yield on_batch, on_progress


def _show_totals(totals: Totals) -> None:
    click.echo(f"batches {totals.last_version + 1}, records {totals.read}")
    for what, counts in (
        ("written", totals.written), ("rule broken", totals.broken), ("dead letter", totals.errors),
    ):  # fmt: skip
        for name, count in counts.items():
            click.echo(f"{what}: {name} {count}")
    if totals.unknown:
        click.echo(f"rows with columns that the schema does not have: {totals.unknown}")


def _alert(project: Project, dead: int) -> int:
    limit = project.dead_letters.limit
    if 0 <= limit < dead:
        click.echo(f"embedlog: {dead} dead letters, {limit} are allowed", err=True)
        return EXIT_ALERT
    return 0


def _plain(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    return str(value)
