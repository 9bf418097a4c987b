"""Deliberate differences between three brokers of embedlog and of Apache Kafka 4.4.0, with reasons.

As in the package above; a step's name begins with the broker of its request.
"""

from __future__ import annotations

from tests.golden.differences import Difference

DIFFERENCES: list[Difference] = [
    Difference(
        "*",
        "*",
        "*.configs[[]max.decompressed.message.bytes[]]*",
        "limits are on by default: a batch may not grow beyond 64 MiB when it is decompressed",
    ),
    Difference(
        "*",
        "* DescribeLogDirs *",
        ".results[[]*[]].*_bytes",
        "the brokers under comparison keep their logs in memory: no volume, so -1 for its sizes",
    ),
    Difference(
        "a_directory_is_lost",
        "* Produce * to one that is alone, *",
        "*.error_message",
        "embedlog names the offline directory, and the reason",
    ),
    Difference(
        "eligible_replicas",
        "* Fetch * what was committed is not more at once",
        "*",
        "when min.insync.replicas falls, replicated records are committed at once",
    ),
    Difference(
        "reassignments_below_the_minimum",
        "*",
        "*.eligible_leader_replicas*",
        "a removed replica is not eligible: it is no replica any more",
    ),
]

NOT_RECORDED = (
    (
        "a running reassignment, changed back to the former replicas",
        "Kafka adds and removes the same broker and never ends unless cancelled; here it ends",
    ),
)
"""Deliberate differences that no recorded answer can show."""
