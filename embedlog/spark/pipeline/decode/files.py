"""Reading the schema files of a project."""

from __future__ import annotations

from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.errors import ProjectError


def read_file(path: str) -> bytes:
    """Return the bytes of a file that a project names.

    Raises:
        ProjectError: the file cannot be read.
    """
    try:
        return real_runtime().files.read(path)
    except OSError as error:
        raise ProjectError(f"{path}: {error.strerror or error}") from None
