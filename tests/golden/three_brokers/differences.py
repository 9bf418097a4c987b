"""What three brokers of embedlog answer otherwise than Apache Kafka 4.4.0, on purpose, and why.

As in the package above; a step's name begins with the broker it was sent to.
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
        "it says which directory is offline, and why",
    ),
    Difference(
        "eligible_replicas",
        "* Fetch * what was committed is not more at once",
        "*",
        "when min.insync.replicas falls, what is replicated counts at once",
    ),
    Difference(
        "reassignments_below_the_minimum",
        "*",
        "*.eligible_leader_replicas*",
        "a replica that was moved away is not eligible: it is no replica any more",
    ),
]

NOT_RECORDED = (
    (
        "a reassignment, under way, back to the replicas that there were before it",
        "Kafka adds and removes the same broker and never ends unless cancelled; here it ends",
    ),
)
"""What differs on purpose where no recorded answer can show it."""
