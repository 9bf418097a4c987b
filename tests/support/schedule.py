"""Which test files share a worker of pytest-xdist: those that use the Spark session do.

A session costs a JVM its start and, in the first tests, the loading of most of Spark.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

SESSION = "tests/spark"
OWN_DRIVERS = frozenset(
    f"{SESSION}/{name}.py"
    for name in (
        "pipeline/test_declarative",
        "pipeline/test_kills",
        "sink/test_killed_streams",
        "sink/test_transactional",
        "test_discovery",
        "test_scale",
        "test_speculation",
    )
)
"""Their tests start processes and leave the session alone, so another worker can run them."""

LONG = (
    "tests/crash/test_images.py",
    "tests/interop/test_cluster.py",
    "tests/crash/test_spark.py",
    "tests/crash/test_faults.py",
    "tests/spark/test_speculation.py",
    "tests/spark/sink/test_transactional.py",
    "tests/interop/test_producer_transactions.py",
    "tests/interop/groups/test_mixed.py",
    "tests/crash/test_nemesis.py",
    "tests/mutants/test_judge.py",
    "tests/simulation/share/test_share.py",
)
"""The files of a minute or more, apart from the session's. They start early, lest one of them runs
alone at the end."""


def uses_session(file: str) -> bool:
    """Return whether tests of this file, named from the project's root, share the session."""
    return file.startswith(f"{SESSION}/") and file not in OWN_DRIVERS


class Scheduling(LoadFileScheduling):
    """Give a worker one file at a time, or all files that use the Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return SESSION if uses_session(file) else file
