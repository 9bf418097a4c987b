"""Hooks that run only in projects whose tests use a cluster, from the first cluster on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from embedlog.testing.plugin import failures

if TYPE_CHECKING:
    from embedlog.testing.plugin.isolation import Isolation

_NAME = "embedlog-active"
_HAS_FAILED = pytest.StashKey[bool]()


def activate(config: pytest.Config) -> Active:
    """Return the hooks; install them at the first call."""
    made: Active | None = config.pluginmanager.get_plugin(_NAME)
    if made is None:
        made = Active()
        config.pluginmanager.register(made, _NAME)
    return made


def has_failed(item: pytest.Item) -> bool:
    """Return whether the test, or a fixture of it, has failed."""
    return item.stash.get(_HAS_FAILED, False)


class Active:
    """The clusters that are open, and the isolation of tests that share one."""

    def __init__(self) -> None:
        self.clusters: list[Any] = []
        """The open clusters: their providers speak when a test fails."""
        self.isolations: list[Isolation] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: pytest.FixtureRequest) -> None:
        # The fixtures of wider scopes are complete: their topics stay.
        if fixturedef.scope == "function" and self.isolations:
            self._begin(request.node)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self._begin(item)

    def _begin(self, item: pytest.Item) -> None:
        fixtures = getattr(item, "fixturenames", ())
        for each in self.isolations:
            if each.fixture is None or each.fixture in fixtures:
                each.begin()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        result = yield
        texts = [text for each in self.isolations for text in each.end()]
        if texts:
            pytest.fail("\n".join(texts), pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        report: pytest.TestReport = yield
        if report.failed and report.when != "teardown":
            item.stash[_HAS_FAILED] = True
            for each in self.clusters:
                report.sections.extend(failures.sections(each))
                directory = item.config.getini("embedlog_save")
                if directory:
                    place = item.config.rootpath / directory
                    report.sections.extend(failures.saved(each, place, item.name))
        return report
