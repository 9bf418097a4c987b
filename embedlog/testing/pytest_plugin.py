"""The pytest plugin: fixtures for a Kafka cluster. Installing embedlog is enough to have them.

    @pytest.mark.kafka(brokers=3, topics={"orders": 6})
    def test_orders(kafka):
        my_service(kafka.bootstrap_servers)

    kafka                       a fresh cluster for each test
    kafka_session               one cluster for the run, cleaned after each test
    kafka_bootstrap_servers     the address of the test's cluster

pytest loads this file in every project that has embedlog, so it imports nothing else of it before
a test asks for a fixture, and it yields to a project's own fixtures and options of these names.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from embedlog.testing.kafka import Kafka
    from embedlog.testing.plugin.real import RealKafka

FIXTURE = "kafka"
"""The default name of the fixture and of the marker."""
_OFF = "off"
_HOLDER = "embedlog-fixtures"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the settings of the ini file."""
    parser.addini(
        "embedlog_fixture",
        "name of embedlog's fixture and marker, in place of kafka; off for none",
        default="",
    )
    parser.addini(
        "embedlog_env",
        "environment variables that lead to the cluster: NAME, or NAME=template with "
        "{bootstrap_servers}, {host}, {port}",
        type="linelist",
        default=[],
    )
    parser.addini(
        "embedlog_leaks",
        "KIND=off, warn or fail, for the kinds connections, errors, threads, transactions",
        type="linelist",
        default=[],
    )
    parser.addini(
        "embedlog_start",
        "use: kafka_session starts when a test asks for it; run: before any conftest is loaded, "
        "with the variables of embedlog_env; run:PORT: the same at a port that the tests expect",
        default="use",
    )
    parser.addini(
        "embedlog_config",
        "NAME=VALUE with Kafka's names: settings of the cluster of embedlog_start = run",
        type="linelist",
        default=[],
    )
    parser.addini(
        "embedlog_timeline",
        "record what happens in each cluster, and print the last events of a failed test's",
        type="bool",
        default=False,
    )
    parser.addini(
        "embedlog_save",
        "directory for the states of failed tests' clusters, for embedlog serve --data",
        default="",
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser
) -> Iterator[None]:
    """Define the fixtures before a project's own, and the options after them."""
    # Before the conftests, so that a project's own fixtures of these names come later, and win.
    _register_fixtures(early_config)
    if early_config.getini("embedlog_start") != "use":
        from embedlog.testing.plugin.session import start_early

        start_early(early_config)
    result = yield
    # After them, because two options of one name would end pytest.
    _add_options(parser)
    return result


def _add_options(parser: pytest.Parser) -> None:
    groups = [*getattr(parser, "_groups", ()), getattr(parser, "_anonymous", None)]
    options = [option for group in groups for option in getattr(group, "options", ())]
    taken = {name for option in options for name in option.names()}
    group = parser.getgroup("embedlog", "embedlog: a Kafka for tests")
    for name, kind, metavar, text in (
        ("kafka", str, "HOST:PORT,...", "run the tests against a real cluster"),
        ("kafka-seed", int, "SEED", "run simulated tests with this seed alone"),
    ):
        option = f"--{name}" if f"--{name}" not in taken else f"--embedlog-{name}"
        dest = f"embedlog_{name.replace('-', '_')}"
        group.addoption(option, dest=dest, type=kind, metavar=metavar, default=None, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    _register_fixtures(config)
    name = fixture_name(config)
    if name != _OFF:
        config.addinivalue_line(
            "markers",
            f"{name}(brokers=1, topics={{}}, config={{}}, clock='real', timeline=False, env=(), "
            "leaks='', id='', ...): the cluster of the test's fixture; several on one test are a "
            "matrix",
        )
    seed = config.getoption("embedlog_kafka_seed", None)
    if seed is not None:
        from embedlog.runtime.environment import set_for_now
        from embedlog.testing.simulation import SEED

        config.add_cleanup(set_for_now({SEED: str(seed)}))


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name the real cluster."""
    address = config.getoption("embedlog_kafka", None)
    return f"kafka: the cluster at {address}, not embedlog" if address else None


def fixture_name(config: pytest.Config) -> str:
    """Return the name of the fixture and the marker, or "off"."""
    return config.getini("embedlog_fixture") or FIXTURE


def _register_fixtures(config: pytest.Config) -> None:
    """Define the fixtures under the names that the project wants."""
    name = fixture_name(config)
    if name == _OFF or config.pluginmanager.hasplugin(_HOLDER):
        return
    holder: Any = ModuleType(_HOLDER)
    holder.fresh = pytest.fixture(name=name)(fresh_cluster)
    holder.session = pytest.fixture(name=f"{name}_session", scope="session")(session_cluster)
    holder.address = pytest.fixture(name=f"{name}_bootstrap_servers")(cluster_address)
    config.pluginmanager.register(holder, _HOLDER)


def fresh_cluster(request: pytest.FixtureRequest) -> Iterator[Kafka | RealKafka]:
    """A fresh cluster for each test, of the shape that the marker `kafka` describes."""
    from embedlog.testing.plugin.fresh import fresh

    yield from fresh(request, fixture_name(request.config))


def session_cluster(request: pytest.FixtureRequest) -> Iterator[Kafka | RealKafka]:
    """One cluster for the run (of each xdist worker). After each test its new topics and groups
    are deleted. `kafka_session.name("orders")` is a name that no other test has.
    """
    from embedlog.testing.plugin.session import session

    yield from session(request)


def cluster_address(request: pytest.FixtureRequest) -> str:
    """The bootstrap servers, `host:port` of each broker, of the test's cluster."""
    name = fixture_name(request.config)
    named = request.fixturenames
    other = f"{name}_session" if name not in named and f"{name}_session" in named else name
    address: str = request.getfixturevalue(other).bootstrap_servers
    return address


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test a case for each cluster that its markers ask for."""
    name = fixture_name(metafunc.config)
    if name in metafunc.fixturenames or f"{name}_session" in metafunc.fixturenames:
        from embedlog.testing.plugin.matrix import parametrize

        parametrize(metafunc, name, __name__)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain how the records of a topic differ from the expected records."""
    from sys import modules

    if op != "==" or "embedlog.testing.topics.diff" not in modules:
        return None  # no test has looked at a topic
    from embedlog.testing.plugin.assertions import explained

    return explained(left, right)
