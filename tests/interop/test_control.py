"""Tests in other languages use the control door: they set faults and see them act."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedlog.testing import Kafka
from tests.support.tools import need_franz_go, need_kafkajs

pytestmark = [pytest.mark.interop, pytest.mark.slow]

HERE = Path(__file__).parent / "control"
TIMEOUT_S = 60


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(topics={"orders": 1}) as made:
        yield made


def output(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kafkajs(kafka: Kafka) -> None:
    command = ["node", str(HERE / "kafkajs.js"), kafka.control().url, "orders"]
    assert output(command, need_kafkajs()) == "2 1 from kafkajs true\n"
    assert list(kafka.faults) == []


def test_franz_go(kafka: Kafka) -> None:
    program = need_franz_go("control")
    assert output([program, kafka.control().url, "orders"]) == "2 1 from franz-go\n"
    assert list(kafka.faults) == []
