"""A project of a user, whose tests run in this process or in another one."""

from __future__ import annotations

import importlib.metadata
import textwrap

import pytest

# A run in this process forgets the modules that it was the first to import. Do not let each run
# import them anew.
import wire.net.listener  # noqa: F401

INSTALLED = importlib.metadata.entry_points(group="pytest11", name="embedlog")


class Project:
    """Files of a user's project, and runs of its tests."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def write(self, **files: str) -> None:
        """Write Python files, by their names without an end."""
        self.pytester.makepyfile(**{name: textwrap.dedent(text) for name, text in files.items()})

    def ini(self, *lines: str) -> None:
        self.pytester.makeini("\n".join(("[pytest]", *lines)))

    def run(
        self, code: str | None = None, *arguments: str, in_process: bool = True
    ) -> pytest.RunResult:
        """Run the tests of `code`, or of the files."""
        if code is not None:
            self.write(test_it=code)
        plugins = () if INSTALLED else ("-p", "embedlog.testing.pytest_plugin")
        run = (
            self.pytester.runpytest_inprocess if in_process else self.pytester.runpytest_subprocess
        )
        return run(*plugins, "--strict-markers", "-p", "no:cacheprovider", *arguments)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)
