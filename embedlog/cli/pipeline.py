"""`embedlog pipeline`: the verbs over a project file.

Exit status: 0 success; 1 a rule with the action `fail` was broken, there are more dead letters than
`dead_letters.limit`, or the lag is greater than `metrics.max_lag_records`; 2 the command failed;
3 Spark's query failed; 130 stopped by a second signal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from signal import SIG_DFL, SIGINT, SIGTERM, signal
from typing import TYPE_CHECKING, Any

import click

from embedlog.cli import archiving, maintenance
from embedlog.cli.jobs import JSON, MASTER, spark_session

if TYPE_CHECKING:
    from embedlog.spark.pipeline.batch.report import BatchReport, Totals
    from embedlog.spark.pipeline.project import Project
    from embedlog.spark.pipeline.running.metrics import Progress
    from embedlog.spark.pipeline.running.runner import Runner

EXIT_ALERT = 1
EXIT_QUERY = 3


def command() -> click.Group:
    """Return the group of verbs."""
    verbs = [
        init,
        validate,
        dry_run,
        run,
        status,
        _replaying("replay", "Read records again, and replace their rows in the tables."),
        _replaying("backfill", "Fill tables from the past: from the topics, or from an archive."),
        redrive,
        archiving.archive,
        archiving.restore,
        archiving.diff,
        maintenance.rewrite,
        maintenance.scrub,
        maintenance.profile,
        maintenance.repartition,
        maintenance.compact,
    ]
    return click.Group(
        "pipeline",
        commands={str(verb.name): verb for verb in verbs},
        help="Pipelines from topics to tables on Spark, exactly once. PROJECT is a project file, "
        "or a directory with a pipeline.toml.",
    )


def _load(_: click.Context, __: click.Parameter, path: str) -> Project:
    from embedlog.spark.pipeline import load

    return load(path)


_PROJECT = click.Argument(["project"], metavar="PROJECT", default=".", callback=_load)


@click.command(
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
) -> None:
    """Write a project to DIRECTORY, with a schema inferred from the last records."""
    from embedlog.spark.pipeline import load
    from embedlog.spark.pipeline.commands import verbs
    from embedlog.spark.pipeline.project import PipelineSource

    if widen:
        changed = verbs.widen(load(directory), sample)
        click.echo(f"widened: {', '.join(changed)}" if changed else "nothing new")
        return
    if not topics or (path is None) == (bootstrap_servers is None):
        raise click.UsageError("--topic, and one of --path and --bootstrap-servers, are needed")
    options = {"kafka.bootstrap.servers": bootstrap_servers} if bootstrap_servers else {}
    source = PipelineSource("embedlog", topics, path, options)
    file = verbs.init(
        directory, name=name or topics[0], source=source, envelope=envelope, sample=sample
    )
    click.echo(f"wrote {file}")


@click.command(
    params=[
        _PROJECT,
        MASTER,
        click.Option(["--no-spark"], is_flag=True, help="do not check the SQL; needs no JVM"),
    ],
)
def validate(project: Project, master: str | None, no_spark: bool) -> None:
    """Check a project file, the files it names, and its SQL."""
    from embedlog.spark.pipeline.commands import verbs
    from embedlog.spark.pipeline.project import notes

    with nullcontext() if no_spark else _session(project, master) as spark:
        for line in verbs.validate(project, spark):
            click.echo(line)
    for note in notes(project):
        click.echo(f"note: {note}", err=True)


@click.command(
    "dry-run",
    params=[
        _PROJECT,
        MASTER,
        click.Option(["-n", "--records", "count"], type=click.IntRange(min=1), default=1000,
                     show_default=True, help="read this many records"),
    ],
)  # fmt: skip
def dry_run(project: Project, master: str | None, count: int) -> None:
    """Show the rows that the last records would give; nothing is written."""
    from embedlog.spark.pipeline.commands import verbs

    with _session(project, master) as spark:
        found = verbs.dry_run(project, spark, count)
    for sink, rows in found.rows.items():
        for row in rows:
            click.echo(json.dumps({"sink": sink, "row": row}, default=_plain))
    for letter in found.dead_letters:
        click.echo(json.dumps({"rejected": letter}, default=_plain))
    click.echo(json.dumps({"report": found.report}))


@click.command(
    params=[
        _PROJECT,
        MASTER,
        click.Option(
            ["--once"], is_flag=True, help="ignore the trigger: write present records and end"
        ),
        JSON,
    ],
)
def run(project: Project, master: str | None, once: bool, as_json: bool) -> int:
    """Run until all present records are written, or for ever, as the trigger of the project says.
    SIGINT and SIGTERM finish the current batch; a second one ends at once.
    """
    from embedlog.spark.pipeline.running.state import check_state

    check_state(project)
    with _session(project, master) as spark, _shown(as_json) as (on_batch, on_progress):
        from embedlog.spark.pipeline.running.runner import Runner

        runner = Runner(spark, project, on_batch=on_batch, on_progress=on_progress)
        _stop_on_signal(runner.stop)
        return _exit_status(runner, once=once, as_json=as_json)


def _exit_status(runner: Runner, *, once: bool, as_json: bool) -> int:
    from embedlog.spark.pipeline.errors import PipelineFailed, QualityFailed

    try:
        totals = runner.run(available_now=True if once else None)
    except (QualityFailed, PipelineFailed) as error:
        click.echo(f"embedlog: {error}", err=True)
        return EXIT_ALERT if isinstance(error, QualityFailed) else EXIT_QUERY
    if not as_json:
        _show_totals(totals)
    return _alert(runner.project, totals.dead)


@click.command(params=[_PROJECT, JSON])
def status(project: Project, as_json: bool) -> int:
    """Show totals, rules, dead letters and lag. Exit status 1 if a limit is exceeded."""
    from embedlog.spark.pipeline.batch.report import Totals
    from embedlog.spark.pipeline.commands import verbs

    found = verbs.status(project)
    totals = Totals(**found.get("totals", {}))
    progress = found["progress"]
    if as_json:
        click.echo(json.dumps(found))
    else:
        _show_totals(totals)
        if progress:
            click.echo(f"lag: {progress['lag_records']} records, {progress['lag_seconds']} s")
    status = _alert(project, totals.dead)
    limit = project.max_lag_records
    if limit is not None and progress and progress["lag_records"] > limit:
        click.echo(f"embedlog: lag {progress['lag_records']}, {limit} are allowed", err=True)
        status = EXIT_ALERT
    return status


def _replaying(name: str, text: str) -> click.Command:
    return click.Command(
        name,
        callback=_replay,
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


def _replay(project: Project, master: str | None, into: str | None, **wanted: Any) -> None:
    with _session(project, master) as spark:
        from embedlog.spark.pipeline.running.replay import Replayer, ReplayRange, skipped_sinks

        report = Replayer(spark, project, into=into).replay(ReplayRange(**wanted))
    for name in skipped_sinks(project):
        click.echo(f"left alone: {name}", err=True)
    click.echo(json.dumps(report.as_dict()))


@click.command(
    params=[
        _PROJECT,
        MASTER,
        click.Option(["--where"], default="true", help="SQL over the columns of the letters, "
                     "such as \"error_stage = 'schema'\""),
        click.Option(["--limit"], type=click.IntRange(min=1),
                     help="at most this many, the oldest first"),
    ],
)  # fmt: skip
def redrive(project: Project, master: str | None, where: str, limit: int | None) -> None:
    """Try dead letters again. A record that fails again stays a dead letter."""
    with _session(project, master) as spark:
        from embedlog.spark.pipeline.running.replay import Replayer

        report = Replayer(spark, project).redrive(where, limit)
    click.echo(json.dumps(report.as_dict()))


def _session(project: Project, master: str | None) -> AbstractContextManager[Any]:
    return spark_session(project.name, master, project.secrets)


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
