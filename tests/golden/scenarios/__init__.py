"""The scenarios, by API. Importing this package registers them all."""

from tests.golden.scenarios import (
    cluster,
    configs,
    fetching,
    malformed,
    offsets,
    producing,
    sessions,
    topics,
)

__all__ = [
    "cluster",
    "configs",
    "fetching",
    "malformed",
    "offsets",
    "producing",
    "sessions",
    "topics",
]
