"""The fixture `kafka`: a cluster for one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from embedlog.errors import ConfigError
from embedlog.runtime.environment import set_for_now
from embedlog.testing.kafka import Kafka
from embedlog.testing.plugin.active import activate, has_failed
from embedlog.testing.plugin.environment import variables
from embedlog.testing.plugin.leak_rules import leak_rules, report
from embedlog.testing.plugin.marks import Marked, cases_of
from embedlog.testing.plugin.real import RealKafka
from embedlog.testing.shape import Shape


def fresh(request: pytest.FixtureRequest, marker: str) -> Iterator[Kafka | RealKafka]:
    """Open the cluster that the markers ask for, and close it after the test."""
    marked: Marked | None = getattr(request, "param", None)
    if marked is None:
        try:
            marked = cases_of(request.node, marker)[0]
        except ConfigError as error:  # of a test that asks for the fixture while it runs
            pytest.fail(str(error), pytrace=False)
    address = real_address(request.config)
    if address is not None:
        with RealKafka(address, marked) as real, led_by(request.config, marked, real):
            yield real
        return
    with Kafka(shape_of(request.config, marked)) as kafka:
        kafka.watch_leaks()
        with led_by(request.config, marked, kafka):
            yield kafka
        rules = leak_rules(request.config.getini("embedlog_leaks"), marked.leaks)
        texts = [] if has_failed(request.node) else checked(kafka, rules)
    if texts:
        pytest.fail("the test left behind\n" + "\n".join(texts), pytrace=False)


def shape_of(config: pytest.Config, marked: Marked) -> Shape:
    """Return the shape of a cluster: the marker's, with a timeline if the ini file asks for it."""
    if "timeline" in marked.given or not config.getini("embedlog_timeline"):
        return marked.shape
    return replace(marked.shape, timeline=True)


def checked(kafka: Kafka, rules: dict[str, str], first: int = 0) -> list[str]:
    """Close the clients of the test, warn of leaks, and return the texts of failing leaks."""
    wanted = [kind for kind, action in rules.items() if action != "off"]
    # A producer that closes aborts its transaction.
    transactions = kafka.leaks("transactions") if "transactions" in wanted else []
    kafka.close_clients(first)
    others = [kind for kind in wanted if kind != "transactions"]
    return report([*transactions, *(kafka.leaks(*others) if others else [])], rules)


def real_address(config: pytest.Config) -> str | None:
    """Return the address of the real cluster of `--kafka`, or None for the fake."""
    address: str | None = config.getoption("embedlog_kafka", None)
    return address or None


@contextmanager
def led_by(config: pytest.Config, marked: Marked, kafka: Any) -> Iterator[None]:
    """Lead the tested program to a cluster by environment variables, and show its failures."""
    clusters = activate(config).clusters
    with ExitStack() as stack:
        for wanted in (config.getini("embedlog_env"), marked.env):
            if wanted:
                stack.callback(set_for_now(variables(wanted, kafka.bootstrap_servers)))
        clusters.append(kafka)
        stack.callback(clusters.remove, kafka)
        yield
