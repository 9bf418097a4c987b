"""What embedlog answers otherwise than Apache Kafka 4.4.0, on purpose, and why.

A row names the scenario, a pattern for the step (`api version note`), a pattern for the path
inside the answer, and the reason. Everything that no row names is equal.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple


class Difference(NamedTuple):
    """One deliberate difference; the patterns are shell-style, `*` any text."""

    scenario: str
    step: str
    path: str
    reason: str

    def covers(self, scenario: str, step: str, path: str) -> bool:
        """Does this row name that place?"""
        return (
            fnmatchcase(scenario, self.scenario)
            and fnmatchcase(step, self.step)
            and fnmatchcase(path, self.path)
        )


DIFFERENCES = [
    Difference(
        "api_versions",
        "*",
        ".api_keys[[]*[]].min_version",
        "older clients are served: the versions that Kafka 4.0 removed are still answered here",
    ),
    Difference(
        "api_versions",
        "*",
        ".api_keys[[]*[]]",
        "ApiVersions lists what has a handler; groups, transactions, ACLs and the rest have none",
    ),
    Difference(
        "*",
        "*",
        "*.configs[[]max.decompressed.message.bytes[]]*",
        "limits are on by default: a batch may not grow beyond 64 MiB when it is decompressed",
    ),
    Difference(
        "fetch_*",
        "Fetch *",
        "*.records.cut",
        "Kafka cuts the last batch in the middle; no client can read a cut batch, so none is sent",
    ),
    Difference(
        "describe_log_dirs",
        "*",
        ".results[[]*[]].*_bytes",
        "the broker under comparison keeps its log in memory: no volume, so -1 for its sizes",
    ),
]
