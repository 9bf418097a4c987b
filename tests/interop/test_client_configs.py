"""The settings of `Kafka.client_config` in other languages, each taken unmodified."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedlog.testing import Kafka
from tests.support.jvm import options
from tests.support.tools import compiled_java, need_franz_go, need_jars, need_kafkajs

pytestmark = [pytest.mark.interop, pytest.mark.slow]

HERE = Path(__file__).parent / "configs"
TIMEOUT_S = 60


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(brokers=2, topics={"orders": 2}) as made:
        yield made


def output(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_java(kafka: Kafka, tmp_path: Path, protocol: str) -> None:
    need_jars("tools")
    made: dict[str, dict[str, Any]] = {
        "producer": kafka.client_config("java", "producer"),
        "consumer": kafka.client_config("java", group_id="g", group_protocol=protocol),
        "admin": kafka.client_config("java", "admin"),
    }
    files = []
    for role, settings in made.items():
        path = tmp_path / f"{role}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        files.append(str(path))
    classes = compiled_java(HERE / "SendAndReceive.java", tmp_path)
    command = ["java", *options("tools"), "-cp", classes, "SendAndReceive", *files, "orders"]
    assert output(command) == "from java\n"


def test_kafkajs(kafka: Kafka) -> None:
    settings = {
        "client": kafka.client_config("kafkajs"),
        "producer": kafka.client_config("kafkajs", "producer"),
        "consumer": kafka.client_config("kafkajs", group_id="g"),
        "admin": kafka.client_config("kafkajs", "admin"),
    }
    command = ["node", str(HERE / "send_and_receive.js"), json.dumps(settings), "orders"]
    assert output(command, need_kafkajs()) == "from kafkajs\n"


def test_franz_go(kafka: Kafka) -> None:
    program = need_franz_go("configs")
    producer = json.dumps(kafka.client_config("franz-go", "producer"))
    consumer = json.dumps(kafka.client_config("franz-go", group_id="g"))
    assert output([program, producer, consumer, "orders"]) == "from franz-go\n"


def test_kcat(kafka: Kafka) -> None:
    from tests.support.tools import need_kcat

    settings = kafka.client_config("kcat", "producer")
    given = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
    program = need_kcat()
    subprocess.run(
        [program, *given, "-t", "orders", "-P"], input=b"from kcat", check=True, timeout=TIMEOUT_S
    )
    settings = kafka.client_config("kcat", group_id="g")
    given = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
    assert output([program, *given, "-G", "g", "-c1", "-q", "orders"]) == "from kcat\n"
