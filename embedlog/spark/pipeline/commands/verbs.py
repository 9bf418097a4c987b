"""The commands that write to no sink: init, validate, dry-run, status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory, write_whole
from embedlog.spark.pipeline.columns import key_columns, with_meta
from embedlog.spark.pipeline.commands import inference
from embedlog.spark.pipeline.commands.sample import SampleRecord, as_frame, last_records
from embedlog.spark.pipeline.decode.debezium import unwrap
from embedlog.spark.pipeline.decode.formats import row_schema
from embedlog.spark.pipeline.decode.json_text import parse_json
from embedlog.spark.pipeline.errors import DecodeError, ProjectError
from embedlog.spark.pipeline.places import check_name, check_topics
from embedlog.spark.pipeline.project import PipelineSource, Project, resolve
from embedlog.spark.pipeline.running.state import StateDirectory
from embedlog.spark.pipeline.schema import Struct, columns_ddl, to_json
from embedlog.spark.pipeline.schema import load as load_schema
from embedlog.spark.pipeline.tables.table import CommitKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TEMPLATE = """\
[pipeline]
name = {name}

[source]
format = "embedlog"
topics = {topics}
{place}

[decode]
format = "json"
schema = "schemas/{name_plain}.json"
envelope = {envelope}

# A transform makes a view of its name; the first one reads `input`.
#[[transform]]
#name = "cleaned"
#sql = "SELECT * FROM input"

# Actions: warn (counts), drop (to the dead letters), fail (stops the pipeline).
#[[rule]]
#name = "has a value"
#expect = "value IS NOT NULL"
#action = "drop"

[[sink]]
name = {name}
type = "parquet"
path = "tables/{name_plain}"

[trigger]
available_now = true
"""


def infer_schema(records: list[SampleRecord], envelope: str) -> Struct:
    """Infer the schema of a sample's JSON values.

    Raises:
        ProjectError: a value is not JSON or not a change, or has another type than the others.
    """
    rows = []
    for record in records:
        if record.value is None:
            continue
        try:
            row = parse_json(record.value)
            rows.append(unwrap(row).row if envelope == "debezium" else row)
        except DecodeError as error:
            place = f"{record.topic}-{record.partition} offset {record.offset}"
            raise ProjectError(f"{place}: {error}") from None
    return inference.infer(rows)


def init(
    directory: str | Path, *, name: str, source: PipelineSource, envelope: str, sample: int
) -> Path:
    """Write a project for `source`: pipeline.toml, and a schema frozen from its last records.

    Raises:
        ProjectError: a project exists, or the schema cannot be inferred.
    """
    check_name(name, "--name")
    check_topics(source.topics, "--topic")
    base = Path(directory)
    file = base / "pipeline.toml"
    files = real_runtime().files
    if files.stat(str(file)) is not None:
        raise ProjectError(f"{file}: is there already; `--widen` updates its schema")
    schema = infer_schema(last_records(source, sample), envelope)
    place = f"path = {json.dumps(str(Path(source.path).resolve()))}" if source.path else ""
    for key, value in source.options.items():
        place += f"\noptions.{json.dumps(key)} = {json.dumps(value)}"
    text = _TEMPLATE.format(
        name=json.dumps(name),
        name_plain=name,
        topics=json.dumps(list(source.topics)),
        place=place.strip(),
        envelope=json.dumps(envelope),
    )
    _write_schema(str(base / "schemas" / f"{name}.json"), schema)
    write_whole(files, str(file), text.encode(), sync=True)
    return file


def widen(project: Project, sample: int) -> list[str]:
    """Add the columns of newer records to the frozen schema; return their names.

    Raises:
        ProjectError: the sample does not fit the schema.
    """
    decode = project.decode
    if decode.format != "json" or decode.schema is None:
        raise ProjectError(f"format {decode.format}: only JSON schemas are inferred")
    files = real_runtime().files
    old = load_schema(decode.schema, files.read(decode.schema))
    new = infer_schema(last_records(project.source, sample), decode.envelope)
    wide = inference.widen(old, new)
    assert isinstance(wide, Struct), wide
    if wide == old:
        return []
    _write_schema(decode.schema, wide)
    before = {each.name: each for each in old.fields}
    return [each.name for each in wide.fields if before.get(each.name) != each]


def validate(project: Project, spark: SparkSession | None) -> list[str]:
    """Check a project against its files, and with `spark` its SQL; return the output's columns.

    Raises:
        ProjectError: a part of the project cannot work; says which.
    """
    columns = with_meta(key_columns(project.decode.key, row_schema(project.decode)))
    for reference in project.decode.maps:
        resolve(reference, project.directory)
    for transform in project.transforms:
        if transform.function is not None:
            resolve(transform.function, project.directory)
    if spark is None:
        return [each.name for each in columns.fields]
    from embedlog.spark.pipeline.commands.check import check_frames

    return check_frames(project, spark.createDataFrame([], columns_ddl(columns)))


class DryRun(NamedTuple):
    """The result of a dry run: rows by sink, dead letters, and the report."""

    rows: dict[str, list[dict[str, Any]]]
    dead_letters: list[dict[str, Any]]
    report: dict[str, Any]


def dry_run(project: Project, spark: SparkSession, count: int) -> DryRun:
    """Run the last `count` records through all steps except the sinks."""
    from embedlog.spark.pipeline.batch import transforms
    from embedlog.spark.pipeline.batch.processor import BatchProcessor

    records = last_records(project.source, count)
    # Let failing rules only warn: a failure would hide the rows that show its reason.
    lenient = replace(
        project,
        rules=tuple(replace(r, action="warn") if r.action == "fail" else r for r in project.rules),
    )
    key = CommitKey("dry-run", 0)
    cached: list[DataFrame] = []
    outcome = BatchProcessor(lenient).evaluate(as_frame(spark, records), key, cached)
    rows = {}
    for sink in project.sinks:
        frame = outcome.views[transforms.source_of(project, sink.source)]
        rows[sink.name] = [each.asDict(recursive=True) for each in frame.collect()]
    dead = [each.asDict(recursive=True) for each in outcome.failed.collect()]
    for frame in cached:
        frame.unpersist()
    return DryRun(rows, dead, outcome.report.as_dict())


def status(project: Project) -> dict[str, Any]:
    """Return the status of a pipeline without asking Spark."""
    state = StateDirectory(project.state)
    return {
        "name": project.name,
        **state.status(),
        "progress": state.progress(),
        "now_ms": state.now_ms(),
    }


def _write_schema(path: str, schema: Struct) -> None:
    files = real_runtime().files
    make_directory(files, str(Path(path).parent), sync=True)
    write_whole(files, path, json.dumps(to_json(schema), indent=1).encode() + b"\n", sync=True)
