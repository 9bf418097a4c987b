"""The tables: whole, consistent, and read one row at a time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from embedlog.config import types
from embedlog.config.definitions import BROKER, CLIENT_METRICS, GROUP, TOPIC, Definitions
from embedlog.config.resources import GROUP_BROKER_NAMES
from embedlog.config.topic_config import BROKER_NAMES

ALL = {"broker": BROKER, "topic": TOPIC, "group": GROUP, "client metrics": CLIENT_METRICS}


@pytest.mark.parametrize("definitions", ALL.values(), ids=ALL)
def test_every_default_keeps_its_rule_and_every_setting_is_explained(
    definitions: Definitions,
) -> None:
    names = definitions.names()
    assert len(names) == len(set(names))
    for name in names:
        key = definitions[name]
        types.check(name, key.rule, key.default_value())
        assert key.mode in ("read-only", "per-broker", "cluster-wide", "internal"), name
        assert definitions.documentation(name).endswith((".", "?")), name


def test_as_many_settings_are_shown_as_a_broker_of_kafka_4_4_shows() -> None:
    shown = {
        kind: sum(not definitions[name].is_internal for name in definitions.names())
        for kind, definitions in ALL.items()
    }
    assert shown == {"broker": 350, "topic": 37, "group": 21, "client metrics": 3}


@pytest.mark.parametrize(("synonyms", "kind"), [(BROKER_NAMES, TOPIC), (GROUP_BROKER_NAMES, GROUP)])
def test_synonyms_exist_on_both_sides_with_one_default(
    synonyms: dict[str, str], kind: Definitions
) -> None:
    chained = {"retention.ms", "segment.ms", "segment.jitter.ms", "flush.ms"}
    for name, broker_name in synonyms.items():
        own, broker = kind[name], BROKER[broker_name]
        if name not in chained and own.default is not None:
            assert (own.default_value(), own.type) == (broker.default_value(), broker.type), name


def test_a_name_that_does_not_exist_has_no_row_and_a_nearest_one() -> None:
    for name in ("", "num", "num.partitions ", "int", "Partitions", "a\nb"):
        assert BROKER.find(name) is None
    assert BROKER.documentation("nope") == ""
    assert BROKER.nearest("num.partition") == "num.partitions"
    assert BROKER.nearest("xyzzy") is None
    with pytest.raises(KeyError):
        BROKER["nope"]


def test_opening_reads_no_table_that_it_does_not_need() -> None:
    code = (
        "import sys, embedlog\n"
        "embedlog.open().close()\n"
        "print(*[m for m in sys.modules if m.startswith('embedlog.config.tables.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tables = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert not tables & {
        "broker_security",
        "broker_coordinators",
        "broker_cluster",
        "topic",
        "group",
        "client_metrics",
    }
