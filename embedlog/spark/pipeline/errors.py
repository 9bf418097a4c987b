"""What a pipeline refuses, each with the values that explain it."""

from __future__ import annotations

from embedlog.errors import ConfigError, EmbedlogError

__all__ = [
    "DecodeError",
    "PipelineFailed",
    "ProjectError",
    "QualityFailed",
    "ReplayRefused",
    "TableConflict",
    "brief",
]


class ProjectError(ConfigError):
    """A project file, or a file it names, that cannot be used: where, what, and the rule."""


class DecodeError(EmbedlogError):
    """A record that does not fit the frozen schema; it becomes a dead letter."""


class QualityFailed(EmbedlogError):
    """A rule with the action `fail` was broken: the batch is not written."""


class TableConflict(EmbedlogError):
    """A commit builds on files that another commit took away; the work has to be done again."""


class ReplayRefused(EmbedlogError):
    """A replay or backfill that could double or lose rows of its target."""


class PipelineFailed(EmbedlogError):
    """Spark failed, for a reason that is none of the pipeline's own; the message is Spark's."""


def brief(error: BaseException) -> str:
    """An error of Spark's in one line, without the stack of its JVM."""
    return " ".join(str(error).split("\n\nJVM")[0].split("\n\tat ")[0].split())[:2000]
