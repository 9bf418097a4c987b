"""kcat, Debian's build: librdkafka 2.0 on a command line."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence

from tests.interop.clients import Headers, Row
from tests.support.tools import need_kcat

SECONDS_MAX = 30
FORMAT = "%o %T %K %S %h\n%k%s\n"
LINE = re.compile(rb"(\d+) (-?\d+) (-?\d+) (-?\d+) ?([^\n]*)\n")


class Kcat:
    """One process for each call."""

    name = "kcat"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    null_values = headers = True
    timestamps = False  # kcat stamps the present time

    def create_topic(self, address: str, topic: str, partitions: int) -> None:
        """By asking for its metadata: the broker creates it with the default count."""
        del partitions
        self._run(address, "-L", "-t", topic, "-X", "allow.auto.create.topics=true")

    def produce(
        self, address: str, topic: str, rows: Sequence[Row], *, codec: str = "none", acks: int = -1
    ) -> None:
        """One process a record: its headers are options."""
        for row in rows:
            options = ["-P", "-t", topic, "-p", "0", "-z", codec, "-X", f"acks={acks}", "-Z"]
            if row.key is not None:
                options += ["-k", row.key.decode()]
            for name, value in row.headers:
                assert value is not None, "kcat sends no null header"
                options += ["-H", f"{name}={value.decode()}"]
            if row.value is None:
                assert row.key is not None
                line = row.key + b":\n"
                self._run(address, *options[:-2], "-K", ":", data=line)
                continue
            with tempfile.NamedTemporaryFile() as content:
                content.write(row.value or b"")
                content.flush()
                self._run(address, *options, content.name)

    def consume(self, address: str, topic: str, count: int) -> list[Row]:
        """From the beginning, with lengths before the bytes."""
        out = self._run(
            address, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count), "-q",
            "-f", FORMAT,
        )  # fmt: skip
        rows: list[Row] = []
        position = 0
        while position < len(out):
            line = LINE.match(out, position)
            assert line is not None, out[position : position + 80]
            offset, timestamp, key_size, value_size = map(int, line.groups()[:4])
            assert offset == len(rows)
            position = line.end()
            key = None if key_size < 0 else out[position : position + key_size]
            position += max(key_size, 0)
            value = None if value_size < 0 else out[position : position + value_size]
            position += max(value_size, 0) + 1
            rows.append(Row(key, value, _headers(line[5]), timestamp))
        return rows

    def offsets(self, address: str, topic: str, timestamp: int) -> int:
        """Query mode."""
        out = self._run(address, "-Q", "-t", f"{topic}:0:{timestamp}").decode()
        return int(out.rsplit(" ", 1)[1])

    @staticmethod
    def _run(address: str, *options: str, data: bytes = b"") -> bytes:
        done = subprocess.run(
            [need_kcat(), "-b", address, *options],
            input=data, capture_output=True, timeout=SECONDS_MAX, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


def _headers(text: bytes) -> Headers:
    if not text:
        return ()
    pairs = (pair.partition(b"=") for pair in text.split(b","))
    return tuple((name.decode(), None if v == b"NULL" else v) for name, _, v in pairs)
