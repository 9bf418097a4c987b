"""A pytest plugin: tell the mutants' tool which test runs and which one fails, then end at once.

The file that MUTANT_WITNESS names gets a line for each event: `run`, `fail` and the test's id.
"""

from __future__ import annotations

import os

import pytest

_failed = False


def _tell(event: str, node_id: str) -> None:
    with open(os.environ["MUTANT_WITNESS"], "a") as file:
        file.write(f"{event} {node_id}\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell("run", nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _tell("fail", report.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    global _failed  # noqa: PLW0603
    if report.failed and not _failed:
        _failed = True
        _tell("fail", report.nodeid)


def pytest_runtest_logfinish() -> None:
    """End after the failing test's own clean-up: no report, and no end of a session that hangs."""
    if _failed:
        os._exit(1)
