"""The fixture `kafka_session`: a cluster for the whole run, one in each xdist worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

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
            isolation = Isolation(real, lambda _first: [])
        else:
            early = config.stash.get(_EARLY, None) if marked is _PLAIN else None
            kafka = fake = early or stack.enter_context(Kafka(shape_of(config, marked)))
            fake.watch_leaks()
            isolation = Isolation(fake, lambda first: checked(fake, rules, first))
        stack.enter_context(led_by(config, marked, kafka))
        isolations = activate(config).isolations
        isolations.append(isolation)
        stack.callback(isolations.remove, isolation)
        yield kafka


def start_early(config: pytest.Config) -> None:
    """Open the cluster of `embedlog_start = run`, and set its variables, for the whole run.

    Raises:
        UsageError: the setting has another value.
    """
    given = config.getini("embedlog_start")
    if given not in _STARTS:
        raise pytest.UsageError(f"embedlog_start = {given}: unknown; {hint(given, _STARTS)}")
    try:
        kafka = config.stash[_EARLY] = Kafka(shape_of(config, _PLAIN))
        named = variables(config.getini("embedlog_env") or True, kafka.bootstrap_servers)
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None
    config.add_cleanup(kafka.close)
    config.add_cleanup(set_for_now(named))
