"""The fixture `kafka_session`: a cluster for the whole run, one in each xdist worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.errors import ConfigError
from embedlog.runtime.environment import set_for_now
from embedlog.testing.kafka import Kafka
from embedlog.testing.names import hint
from embedlog.testing.plugin.active import activate
from embedlog.testing.plugin.environment import variables
from embedlog.testing.plugin.fresh import checked, led_by, real_address, shape_of
from embedlog.testing.plugin.isolation import Isolation
from embedlog.testing.plugin.leak_rules import leak_rules
from embedlog.testing.plugin.marks import Marked
from embedlog.testing.plugin.real import RealKafka
from embedlog.testing.shape import Shape

_EARLY = pytest.StashKey[Kafka]()
_STARTS = ("use", "run")
_PLAIN = Marked(shape=Shape(), given={})


def session(request: pytest.FixtureRequest) -> Iterator[Kafka | RealKafka]:
    """Open a cluster, and isolate the tests that use it until it closes."""
    config = request.config
    marked: Marked = getattr(request, "param", None) or _PLAIN
    with ExitStack() as stack:
        kafka: Kafka | RealKafka
        rules = leak_rules(config.getini("embedlog_leaks"), marked.leaks)
        # Clients of a wider scope stay connected from test to test.
        rules["connections"] = rules["threads"] = "off"
        address = real_address(config)
        if address is not None:
            kafka = real = stack.enter_context(RealKafka(address, marked))
            isolation = Isolation(real, lambda _first: [], fixture=request.fixturename)
        else:
            early = config.stash.get(_EARLY, None) if marked is _PLAIN else None
            kafka = fake = early or stack.enter_context(Kafka(shape_of(config, marked)))
            fake.watch_leaks()
            name = None if early else request.fixturename
            isolation = Isolation(fake, lambda first: checked(fake, rules, first), fixture=name)
        stack.enter_context(led_by(config, marked, kafka))
        isolations = activate(config).isolations
        isolations.append(isolation)
        stack.callback(isolations.remove, isolation)
        yield kafka


def start_early(config: pytest.Config) -> None:
    """Open the cluster of `embedlog_start = run`, and set its variables, for the whole run.

    Raises:
        UsageError: the setting or `embedlog_config` has a wrong value, or the port is taken.
    """
    port = _port_of(config.getini("embedlog_start"))
    try:
        kafka = config.stash[_EARLY] = _open_at(config, port)
        config.add_cleanup(kafka.close)
        config.pluginmanager.register(_End(kafka))
        named = variables(config.getini("embedlog_env") or True, kafka.bootstrap_servers)
    except (ConfigError, OSError) as error:
        raise pytest.UsageError(f"embedlog_start: {error}") from None
    config.add_cleanup(set_for_now(named))


class _End:
    """Closes a cluster while the handlers of the user's loggers can still write."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka

    def pytest_unconfigure(self) -> None:
        self._kafka.close()


def _settings(lines: list[str]) -> dict[str, object]:
    for line in lines:
        if "=" not in line:
            raise ConfigError(f"embedlog_config = {line}: expected NAME=VALUE")
    pairs = (line.partition("=") for line in lines)
    return Shape.of(config={name.strip(): value.strip() for name, _, value in pairs}).settings()


def _open_at(config: pytest.Config, port: int) -> Kafka:
    settings = _settings(config.getini("embedlog_config"))
    cluster = Cluster(None, settings, is_embedded=True)
    try:
        listener = cluster.listen("127.0.0.1", port)
        return Kafka(shape_of(config, _PLAIN), cluster=cluster, listener=listener)
    except BaseException:
        cluster.close()
        raise


def _port_of(given: str) -> int:
    """Return the port of `run:PORT`, or 0 for a free one."""
    name, _, port = given.partition(":")
    if name not in _STARTS:
        raise pytest.UsageError(f"embedlog_start = {given}: unknown; {hint(name, _STARTS)}")
    if not port and ":" not in given:
        return 0
    if name != "run" or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise pytest.UsageError(f"embedlog_start = {given}: expected run:PORT, as in run:9092")
    return int(port)
