"""The sections that a cluster adds to the report of a failed test.

`Kafka.on_failure(provider)` adds a provider: a function that returns titles and texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def sections(kafka: Any) -> Iterator[tuple[str, str]]:
    """Yield the sections of all providers, while the cluster is still open.

    A provider that fails does not hide the failure of the test: its section says why.
    """
    for provider in getattr(kafka, "failure_providers", ()):
        yield from _of(provider)


def _of(provider: Any) -> list[tuple[str, str]]:
    from embedlog.errors import EmbedlogError

    try:
        return [(f"kafka: {title}", text) for title, text in provider()]
    except (EmbedlogError, OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        return [("kafka", f"{provider!r} cannot report: {error!r}")]
