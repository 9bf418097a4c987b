"""A pytest plugin that prints the CPU seconds of each test file, child processes included.

    .ci/test -p tests.support.cpu_table

Wall time depends on the other load of the machine, CPU time hardly does. A JVM or a broker that
outlives a test counts for the file that ran while it worked. Collection is a line of its own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process_tree import cpu_seconds

_COLLECTION = "(collection)"
_KEY = "embedlog_cpu_seconds"


class _Meter:
    """CPU seconds of this process and its children, by test file."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._file = _COLLECTION
        self._before = 0.0

    def change_to(self, file: str) -> None:
        """Book what was used since the last call under the last file."""
        if file != self._file:
            # Not at every test: it reads all of /proc.
            now = cpu_seconds(os.getpid())
            self.seconds[self._file] += now - self._before
            self._before, self._file = now, file


_meter = _Meter()
_total: Counter[str] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Start booking for the file of this test; the fixtures that it leaves behind count for it."""
    _meter.change_to(str(item.path.relative_to(item.config.rootpath)))
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker of xdist measured to the process that prints the table."""
    _meter.change_to("(end)")
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_KEY] = dict(_meter.seconds)
    elif not session.config.getoption("numprocesses", None):
        _total.update(_meter.seconds)  # else the workers, its children, tell more exactly


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Add up what a worker of xdist measured."""
    _total.update(getattr(node, "workeroutput", {}).get(_KEY, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print folders and their files, the most expensive first."""
    folders: Counter[str] = Counter()
    for file, seconds in _total.items():
        folders[file if file == _COLLECTION else str(Path(file).parent)] += seconds
    terminalreporter.section("CPU seconds")
    for folder, seconds in folders.most_common():
        terminalreporter.write_line(f"{seconds:8.1f}  {folder}")
        for file, part in _total.most_common():
            if str(Path(file).parent) == folder and file != _COLLECTION:
                terminalreporter.write_line(f"{part:18.1f}  {Path(file).name}")
    terminalreporter.write_line(f"{sum(_total.values()):8.1f}  together")
