"""kafkajs: a client in JavaScript, driven through `kafkajs_client.js`."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.interop.clients import Row
from tests.support.tools import need_kafkajs

SCRIPT = Path(__file__).with_name("kafkajs_client.js")
SECONDS_MAX = 40


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


class KafkaJs:
    """One node process for each call."""

    name = "kafkajs"
    codecs = ("none", "gzip", "snappy", "lz4")  # kafkajs can only read zstd
    null_values = headers = timestamps = True

    def create_topic(self, address: str, topic: str, partitions: int) -> None:
        """With its admin client."""
        self._call(address, op="create", topic=topic, partitions=partitions)

    def produce(
        self, address: str, topic: str, rows: Sequence[Row], *, codec: str = "none", acks: int = -1
    ) -> None:
        """One send."""
        messages = [
            {
                "key": _text(row.key),
                "value": _text(row.value),
                "headers": [[name, _text(value)] for name, value in row.headers],
                "timestamp": str(row.timestamp),
            }
            for row in rows
        ]
        self._call(address, op="produce", topic=topic, messages=messages, codec=codec, acks=acks)

    def consume(self, address: str, topic: str, count: int) -> list[Row]:
        """With the fetch of its broker object, because its consumer knows only groups."""
        found = self._call(address, op="consume", topic=topic, count=count)
        assert [row["offset"] for row in found] == [str(i) for i in range(count)]
        return [
            Row(
                _bytes(row["key"]),
                _bytes(row["value"]),
                tuple((name, _bytes(value)) for name, value in row["headers"]),
                int(row["timestamp"]),
            )
            for row in found
        ]

    def offsets(self, address: str, topic: str, timestamp: int) -> int:
        """fetchTopicOffsets, or by timestamp (which falls back to the end when none is later)."""
        return int(self._call(address, op="offsets", topic=topic, timestamp=timestamp))

    @staticmethod
    def _call(address: str, **command: Any) -> Any:
        done = subprocess.run(
            ["node", str(SCRIPT)],
            input=json.dumps({"address": address, **command}).encode(),
            capture_output=True, timeout=SECONDS_MAX, check=False, env=need_kafkajs(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)
