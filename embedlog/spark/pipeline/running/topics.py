"""Reads the project's topics, with the same columns and options for both formats."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from embedlog.spark.pipeline.project import Project

BATCH_RECORDS_MAX = "1000000"
_BATCH_ONLY = ("endingoffsets", "endingoffsetsbytimestamp", "endingtimestamp")
_STREAM_ONLY = ("maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay")
_START = ("startingoffsets", "startingoffsetsbytimestamp", "startingtimestamp")


def read_stream(spark: SparkSession, project: Project) -> DataFrame:
    """Read the topics as a stream."""
    # Without a limit the first batch would be the whole backlog.
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": BATCH_RECORDS_MAX}
    given = _without(project, _BATCH_ONLY)
    if any(name.lower() == "maxoffsetspertrigger" for name in given):
        del options["maxOffsetsPerTrigger"]
    options.update(given)
    if any(name.lower() in _START[1:] for name in options):
        options.pop("startingOffsets")
    reader = spark.readStream.format(project.source.format)
    return reader.options(**_all(project, options)).load()


def read_batch(spark: SparkSession, project: Project, options: Mapping[str, str]) -> DataFrame:
    """Read the topics once; `options` give the bounds.

    With `assign` among them only these partitions are read: offsets must name each partition that
    is read, and the topics may have more by now.
    """
    given = _without(project, (*_STREAM_ONLY, *_BATCH_ONLY, *_START))
    reader = spark.read.format(project.source.format)
    return reader.options(**_all(project, {**given, **options})).load()


def _without(project: Project, names: tuple[str, ...]) -> dict[str, str]:
    return {k: v for k, v in project.source.options.items() if k.lower() not in names}


def _all(project: Project, options: Mapping[str, str]) -> dict[str, str]:
    made = {**options, "includeHeaders": "true"}
    if "assign" not in made:
        made["subscribe"] = ",".join(project.source.topics)
    if project.source.path is not None and project.source.format == "embedlog":
        made["path"] = project.source.path
    return made
