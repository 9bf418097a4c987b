"""A project of a user, whose tests run in this process or in another one."""

from __future__ import annotations

import importlib.metadata
import textwrap

import pytest

import embedlog
import embedlog.testing.forms
import embedlog.testing.plugin.assertions
import embedlog.testing.plugin.failures
import embedlog.testing.plugin.fresh
import embedlog.testing.plugin.matrix
import embedlog.testing.plugin.session
import embedlog.testing.simulation
from embedlog.testing import Kafka

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


@pytest.fixture(scope="session")
def _loaded() -> None:
    """Load the modules that the runs use. A run in this process forgets the modules that it is the
    first to import, so each would import them anew.
    """
    with Kafka(topics={"orders": 1}) as kafka:
        address = kafka.bootstrap_servers
        with embedlog.Producer(address) as producer, kafka.producer() as own:
            producer.send("orders", b"x").result()
            own.send("orders", b"x").result()
        for target in (address, kafka.cluster):
            with embedlog.Consumer(target, group_id="g", auto_offset_reset="earliest") as consumer:
                consumer.subscribe(["orders"])
                while not consumer.poll(1_000):
                    pass
            with embedlog.Admin(target) as admin:
                admin.describe_cluster()
                assert list(admin.delete_groups(["g"])) == ["g"] or target is kafka.cluster
                admin.list_groups().check()
                admin.describe_topics(["orders"]).check()
        with embedlog.Admin(address) as admin:
            admin.delete_topics(["orders"]).check()
        assert kafka.leaks() == []
    with Kafka(brokers=2):
        pass


@pytest.fixture
def project(pytester: pytest.Pytester, _loaded: None) -> Project:
    return Project(pytester)
