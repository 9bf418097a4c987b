"""Deliberate differences between the answers of embedlog and Apache Kafka 4.4.0, with reasons.

A row names the scenario, a pattern for the step (`api version note`), a pattern for the path inside
the answer, and the reason. All other values are equal.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple


class Difference(NamedTuple):
    """One deliberate difference; the patterns are shell-style, `*` matches any text."""

    scenario: str
    step: str
    path: str
    reason: str

    def covers_step(self, scenario: str, step: str) -> bool:
        """Return whether the row names a place in the answer of this step."""
        return fnmatchcase(scenario, self.scenario) and fnmatchcase(step, self.step)

    def covers(self, scenario: str, step: str, path: str) -> bool:
        """Return whether the row names this place."""
        return self.covers_step(scenario, step) and fnmatchcase(path, self.path)


DIFFERENCES = [
    Difference(
        "share_batch_optimized",
        "ShareFetch 2 BatchSize 0",
        ".responses*.acquired_records*",
        "Kafka answers a range that ends before it begins; embedlog takes 0 for 1",
    ),
    Difference(
        "share_log_start",
        "ShareFetch 2 *",
        ".responses*",
        "Kafka answers without records once, then also offers records below the log start; embedlog"
        " answers at once with the records from the log start on",
    ),
    Difference(
        "share_transactions",
        "ShareFetch 2 read_committed, *",
        ".responses*",
        "after an aborted transaction Kafka answers without records once; embedlog answers at once"
        " with the records behind it",
    ),
    Difference(
        "join_twice_while_waiting",
        "the first of both*",
        "",
        "of two requests of a member the first gets REBALANCE_IN_PROGRESS; Kafka never answers it",
    ),
    Difference(
        "sync_in_each_state",
        "the first of both syncs",
        "",
        "of two requests of a member the first gets REBALANCE_IN_PROGRESS; Kafka never answers it",
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
        "ApiVersions lists APIs with a handler; ACLs, for example, have none",
    ),
    Difference(
        "streams_endpoints_at_join",
        "StreamsGroupHeartbeat 1 a source is missing*",
        "*",
        "Kafka fails over a member with an endpoint whose topology has no tasks yet (-1); embedlog"
        " answers",
    ),
    Difference(
        "*",
        "*",
        "*.configs[[]max.decompressed.message.bytes[]]*",
        "limits are on by default: a batch may not grow beyond 64 MiB when it is decompressed",
    ),
    Difference(
        "alter_no_share_offsets",
        "ShareGroupDescribe * the group of change 4",
        ".groups*",
        "a refused request creates no group; Kafka creates it before it refuses",
    ),
    Difference(
        "fetch_*",
        "Fetch *",
        "*.records.cut",
        "Kafka cuts the last batch in the middle; no client can read a cut batch, so none is sent",
    ),
    Difference(
        "*",
        "DescribeLogDirs *",
        ".results[[]*[]].*_bytes",
        "the broker under comparison keeps its log in memory: no volume, so -1 for its sizes",
    ),
]

NOT_RECORDED = (
    ("Produce with null records", "Kafka never answers; embedlog says INVALID_RECORD (87)"),
    (
        "AddPartitionsToTxn 4 and later without transactions",
        "Kafka never answers; embedlog gives an empty answer",
    ),
    (
        "WriteTxnMarkers with a marker that names a topic or a partition twice",
        "Kafka writes the marker and never answers; embedlog answers",
    ),
    (
        "Produce that names a partition twice, once with records that are refused unread",
        "Kafka appends the others and answers the refusal; here the last entry alone counts",
    ),
    (
        "a timestamp below the log start offset, in ListOffsets",
        "Kafka finds nothing while the last segment before the start exists; embedlog the record",
    ),
    (
        "AlterConfigs that names a resource twice",
        "Kafka never answers; embedlog says INVALID_REQUEST (42)",
    ),
    (
        "the first FindCoordinator",
        "Kafka says COORDINATOR_NOT_AVAILABLE until its offsets topic exists; here it does at once",
    ),
    (
        "documentation of settings in DescribeConfigs",
        "Kafka's texts are not copied; embedlog has one sentence each",
    ),
    (
        "JoinGroup that names a protocol twice",
        "Kafka waits for a second member that supports it; embedlog counts members, not names",
    ),
    (
        "EndTxn 5 with the previous epoch, after an end that kept the epoch",
        "Kafka takes it for a repeated end and gives a zombie its successor's epoch; it is fenced",
    ),
    (
        "a transactional Produce that is refused, then one of another epoch or version",
        "Kafka judges it by the refused one; embedlog by its version, and by refusals of its epoch",
    ),
    (
        "aborted transactions of a Fetch that ends before the end of the log",
        "Kafka also names later ones, up to its next index entry; embedlog only the answer's own",
    ),
    (
        "OffsetFetch by name, of a topic that was recreated while the broker was down",
        "Kafka compares names; embedlog ignores an offset of another topic id",
    ),
    (
        "Produce 0-2 and Fetch 0-3",
        "Kafka 4.4 refuses them; embedlog answers by the rules of 3.x, for older clients",
    ),
    (
        "WriteShareGroupState with a batch that ends before its begin, or at offset 2^63 - 1",
        "Kafka stores it, and no later write can be merged; embedlog says INVALID_REQUEST (42)",
    ),
    (
        "max.decompressed.message.bytes",
        "Kafka limits a record, INVALID_RECORD (87); embedlog a batch, MESSAGE_TOO_LARGE (10)",
    ),
    (
        "limits of embedlog.*, and defaults of max.connections, max.connections.per.ip and others",
        "Kafka has no such limits; embedlog refuses a client that takes more than its share",
    ),
    (
        "the leader epoch after a restart of a single broker",
        "Kafka elects each leader again, which raises its epoch; here only lost records raise it",
    ),
    (
        "DescribeShareGroupOffsets of partitions beyond the topic's last",
        "Kafka asks for 31 s, and then says -1; embedlog says -1 at once",
    ),
    (
        "partitions that a member of a share group keeps",
        "Kafka's choice depends on hashes of ids; embedlog keeps those with the least numbers",
    ),
    (
        "the member that gets a task, among equally loaded members or processes",
        "Kafka's choice depends on hashes of ids; embedlog takes the first by name",
    ),
    (
        "the order in which a status names missing internal topics",
        "Kafka's order depends on hashes of names; embedlog sorts the names",
    ),
    (
        "large fetches",
        "an answer is sent at 4 MiB even if the client and fetch.max.bytes allow more",
    ),
)
"""Deliberate differences that no recorded answer can show."""
