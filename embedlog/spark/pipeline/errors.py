"""The errors of a pipeline, each with the values that explain it."""

from __future__ import annotations

from embedlog.errors import ConfigError, EmbedlogError


class ProjectError(ConfigError):
    """A project file, or a file that it names, cannot be used. Says where, what and why."""


class DecodeError(EmbedlogError):
    """A record does not fit the frozen schema; it becomes a dead letter."""


class QualityFailed(EmbedlogError):
    """A row broke a rule with the action `fail`: the batch is not written."""


class TableConflict(EmbedlogError):
    """A commit needs files that another commit removed; the work must be repeated."""


class PipelineInUse(EmbedlogError):
    """Another run of the pipeline uses its state directory, or one of its tables."""


class StagedFilesGone(EmbedlogError):
    """Another run of the same application took over: it removed the files that this one staged."""


class ReplayRefused(EmbedlogError):
    """A replay or backfill could duplicate or lose rows of its target."""


class PipelineFailed(EmbedlogError):
    """Spark failed for a reason outside of the pipeline; the message is Spark's."""


def brief(error: BaseException) -> str:
    """Return an error of Spark in one line, without its JVM's stack."""
    return " ".join(str(error).split("\n\nJVM")[0].split("\n\tat ")[0].split())[:2000]
