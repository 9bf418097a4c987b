"""SQL and functions over frames. Each makes a view that later transforms can name."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from embedlog.spark.pipeline.errors import ProjectError, brief
from embedlog.spark.pipeline.project import Project, Transform, resolve

INPUT = "input"


def apply(
    project: Project, rows: DataFrame, sessions: Callable[[Transform, DataFrame], DataFrame]
) -> dict[str, DataFrame]:
    """Return the frames of all transforms by name; `input` is the decoded rows.

    `sessions(transform, rows)` returns the closed sessions of a transform.

    Raises:
        ProjectError: a transform cannot be analysed; names it.
    """
    frames = {INPUT: rows}
    rows.createOrReplaceTempView(INPUT)
    last = rows
    for transform in project.transforms:
        last = _one(project, transform, last, sessions)
        last.createOrReplaceTempView(transform.name)
        frames[transform.name] = last
    return frames


def _one(
    project: Project,
    transform: Transform,
    last: DataFrame,
    sessions: Callable[[Transform, DataFrame], DataFrame],
) -> DataFrame:
    try:
        if transform.sql is not None:
            return last.sparkSession.sql(transform.sql)
        if transform.sessions is not None:
            return sessions(transform, last)
        assert transform.function is not None, transform
        made = resolve(transform.function, project.directory)(last)
    except (AnalysisException, ParseException) as error:
        raise ProjectError(f"transform {transform.name!r}: {brief(error)}") from error
    if not isinstance(made, DataFrame):
        raise ProjectError(f"transform {transform.name!r}: gave {made!r}, a DataFrame is needed")
    return made


def source_of(project: Project, name: str | None) -> str:
    """Return the view that a sink reads; by default the last one."""
    if name is not None:
        return name
    return project.transforms[-1].name if project.transforms else INPUT
