"""The rules cost nothing where there is none."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from embedlog.testing import Kafka

with Kafka(topics={"t": 1}) as kafka:
    kafka.producer().send("t", b"x").result()
    assert kafka.cluster.broker().core.interceptor is None
    loaded = [name for name in sys.modules if name.startswith("embedlog.testing.faults")]
    assert not loaded, loaded
    with kafka.fault("Produce", error="NOT_ENOUGH_REPLICAS"):
        assert kafka.cluster.broker().core.interceptor is not None
        kafka.producer(retry_backoff_ms=1).send("t", b"x").result()
    assert kafka.cluster.broker().core.interceptor is None
"""


def test_nothing_of_the_rules_is_loaded_or_installed_without_a_rule() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=60)
