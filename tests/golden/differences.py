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

    def covers_step(self, scenario: str, step: str) -> bool:
        """Does this row name a place of that step's answer?"""
        return fnmatchcase(scenario, self.scenario) and fnmatchcase(step, self.step)

    def covers(self, scenario: str, step: str, path: str) -> bool:
        """Does this row name that place?"""
        return self.covers_step(scenario, step) and fnmatchcase(path, self.path)


DIFFERENCES = [
    Difference(
        "join_twice_while_waiting",
        "the first of both*",
        "",
        "of two requests of one member the first is answered REBALANCE_IN_PROGRESS, not never",
    ),
    Difference(
        "sync_in_each_state",
        "the first of both syncs",
        "",
        "of two requests of one member the first is answered REBALANCE_IN_PROGRESS, not never",
    ),
    Difference(
        "offsets_of_consumer_groups",
        "OffsetFetch * fetch by None with epoch 1",
        ".groups*.error_code",
        "Kafka fails over a member epoch without member id; embedlog says UNKNOWN_MEMBER_ID (25)",
    ),
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
        "ApiVersions lists what has a handler; share groups and ACLs have none",
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

NOT_RECORDED = (
    ("Produce with null records", "Kafka never answers; embedlog says INVALID_RECORD (87)"),
    (
        "AlterConfigs that names a resource twice",
        "Kafka never answers; embedlog says INVALID_REQUEST (42)",
    ),
    (
        "the first FindCoordinator",
        "Kafka says COORDINATOR_NOT_AVAILABLE until its offsets topic is there; here it is at once",
    ),
    (
        "documentation of settings in DescribeConfigs",
        "Kafka's texts are not copied; ours say the same in one sentence",
    ),
    (
        "JoinGroup that names a protocol twice",
        "Kafka waits for a second member that supports it; embedlog counts members, not names",
    ),
    (
        "EndTxn 5 with the epoch before, after an end that left the epoch as it was",
        "Kafka takes it for a repeated end and gives a zombie its successor's epoch; it is fenced",
    ),
    (
        "a transactional Produce that is refused, then one of another epoch or version",
        "Kafka judges it by the refused one; here by its own version, and refusals of its epoch",
    ),
    (
        "aborted transactions of a Fetch that ends before the log does",
        "Kafka also names some behind it, up to its next index entry; here those of the answer",
    ),
    (
        "OffsetFetch by name, of a topic that was made anew while the broker did not look",
        "Kafka goes by the name; an offset that was committed for another topic id is none",
    ),
    (
        "Produce 0-2 and Fetch 0-3",
        "Kafka 4.4 refuses them; embedlog answers by the rules of 3.x, for older clients",
    ),
    (
        "large fetches",
        "an answer is sent off at 4 MiB even where the client and fetch.max.bytes allow more",
    ),
)
"""What differs on purpose where no recorded answer can show it."""
