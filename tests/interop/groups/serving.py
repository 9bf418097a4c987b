"""The tested broker in a process of its own, which can be killed and restarted.

GROUPS_BROKER=kafka runs the tests of this folder, and of `share`, against a real Apache Kafka, to
test the tests themselves. GROUPS_BROKER=host:port uses a running broker, with the tests' settings.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.kafka import real_kafka
from tests.support.tools import ROOT

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}
"""The broker notices dead members after seconds, instead of most of a minute."""
SECONDS_MAX = 60


class Serve:
    """`embedlog serve` on one port, which stays the same over restarts."""

    def __init__(self, data: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        self._data = data
        self._settings = SETTINGS if settings is None else settings
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def address(self) -> str:
        """Return the address for clients."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """Return the pid of the present process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it on its former port; return when it listens."""
        command = [sys.executable, "-m", "embedlog", "serve", "--port", str(self._port)]
        if self._data is not None:
            command += ["--data", str(self._data)]
        for name, value in self._settings.items():
            command += ["--config", f"{name}={value}"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.fullmatch(r"embedlog: listening on 127\.0\.0\.1:(\d+)\n", line)
        assert found is not None, line
        self._port = int(found[1])

    def stop(self) -> None:
        """Send SIGTERM, and wait for the clean end."""
        assert self._process is not None
        self._process.terminate()
        status = self._process.wait(SECONDS_MAX)
        assert status == 0, status

    def kill(self) -> None:
        """Send SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def discard(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@contextlib.contextmanager
def group_broker(directory: Path, settings: Mapping[str, str] = SETTINGS) -> Iterator[str]:
    """Yield the address of the tested broker: embedlog unless GROUPS_BROKER names another."""
    asked = os.environ.get("GROUPS_BROKER", "embedlog")
    if asked == "kafka":
        with real_kafka(directory, settings=settings) as address:
            yield address
    elif ":" in asked:
        yield asked
    else:
        serve = Serve(settings=settings)
        try:
            yield serve.address
        finally:
            serve.discard()
