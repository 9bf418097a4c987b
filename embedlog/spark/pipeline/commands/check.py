"""Analyses a project's rules and transforms on an empty frame."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from embedlog.spark.pipeline.batch import transforms
from embedlog.spark.pipeline.batch.sessions import aggregate
from embedlog.spark.pipeline.errors import ProjectError, brief
from embedlog.spark.pipeline.project import Project, Rule, Transform
from embedlog.spark.pipeline.sinks.write import check_partitions, rows_to_keep


def check_frames(project: Project, empty: DataFrame) -> list[str]:
    """Return the columns of each sink as `sink: column type, ...`.

    Raises:
        ProjectError: a rule or transform cannot be analysed, or a sink lacks a column.
    """
    for rule in project.rules:
        if rule.on == "input":
            _check_rule(rule, empty)
    views = transforms.apply(
        project,
        empty.drop("_error", "_value"),
        lambda transform, rows: _no_sessions(project, transform, rows),
    )
    output = views[transforms.source_of(project, None)]
    for rule in project.rules:
        if rule.on == "output":
            _check_rule(rule, output)
    found = []
    for sink in project.sinks:
        rows = views[transforms.source_of(project, sink.source)]
        needed = list(sink.keys)
        if sink.mode != "append":
            needed += [sink.sequence_by, "_topic", "_partition", "_offset", "_deleted"]
        for name in needed:
            if name not in rows.columns:
                raise ProjectError(
                    f"sink {sink.name!r} needs the column {name!r}; its rows have "
                    f"{', '.join(rows.columns)}"
                )
        kept = rows_to_keep(rows, sink)
        check_partitions(sink, kept)
        columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in kept.schema.fields)
        found.append(f"{sink.name}: {columns}")
    return found


def _no_sessions(project: Project, transform: Transform, rows: DataFrame) -> DataFrame:
    sessions = transform.sessions
    assert sessions is not None, transform
    assert project.watermark is not None, transform
    for column in (*sessions.key, project.watermark.column):
        if column not in rows.columns:
            raise ProjectError(
                f"transform {transform.name!r} needs the column {column!r}; there are "
                f"{', '.join(rows.columns)}"
            )
    return aggregate(rows, sessions, project.watermark)


def _check_rule(rule: Rule, rows: DataFrame) -> None:
    try:
        kind = rows.selectExpr(rule.expect).schema.fields[0].dataType.simpleString()
    except (AnalysisException, ParseException) as error:
        raise ProjectError(f"rule {rule.name!r}: {brief(error)}") from error
    if kind != "boolean":
        raise ProjectError(f"rule {rule.name!r}: {rule.expect}: is {kind}, a boolean is needed")
