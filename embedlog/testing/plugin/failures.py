"""The sections that a cluster adds to the report of a failed test.

providers    the titles and texts of `Kafka.on_failure(provider)`
timeline     the newest events, if there is a recording: see `embedlog_timeline`
state        the path of the saved state: see `embedlog_save`
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TAIL = 40
"""The number of events that a report shows."""


def sections(kafka: Any) -> Iterator[tuple[str, str]]:
    """Yield the sections of all providers, while the cluster is still open.

    A provider that fails does not hide the failure of the test: its section says why.
    """
    for provider in getattr(kafka, "failure_providers", ()):
        yield from _of(provider)
    recording = vars(kafka).get("recording")
    if recording is not None and len(recording):
        count = len(recording)
        shown = f"the last {_TAIL} of {count}" if count > _TAIL else f"all {count}"
        yield f"kafka: timeline, {shown} events", recording.tail(_TAIL)


def saved(kafka: Any, directory: Path, test: str) -> Iterator[tuple[str, str]]:
    """Save the state of a cluster in a new directory below `directory`; yield a section about it.

    A state that cannot be saved does not hide the failure of the test.
    """
    from shlex import quote

    from embedlog.errors import EmbedlogError
    from embedlog.testing.kafka import Kafka

    if not isinstance(kafka, Kafka):
        return
    try:
        path = kafka.save(_free(directory, test))
    except (EmbedlogError, OSError) as error:
        yield "kafka: saved state", f"the state cannot be saved: {error}"
        return
    yield "kafka: saved state", f"{path}\nopen it with: embedlog serve --data {quote(path)}"


def _free(directory: Path, test: str) -> Path:
    """Return a path that does not exist: the test's name, with a number after earlier runs."""
    import re

    from embedlog.runtime.os_files import OsFiles

    files, name = OsFiles(), re.sub(r"[^\w.,=-]+", "-", test).strip("-")
    number, path = 1, directory / name
    while files.stat(str(path)) is not None:
        number += 1
        path = directory / f"{name}-{number}"
    return path


def _of(provider: Any) -> list[tuple[str, str]]:
    from embedlog.errors import EmbedlogError

    try:
        return [(f"kafka: {title}", text) for title, text in provider()]
    except (EmbedlogError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        return [("kafka", f"{provider!r} cannot report: {error!r}")]
