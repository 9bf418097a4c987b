"""Run the applications' tests on several kinds of broker, and print what each takes.

python -m tests.applications.figures [fresh session workers real]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.kafka import real_kafka

FOLDER = Path(__file__).parent
APPLICATIONS = ("orders_api", "retry_worker", "batch_report")
EMPTY = """
import pytest

@pytest.mark.parametrize("number", range(200))
def test_nothing({name}number):
    {body}
"""


def run(target: str, *arguments: str, broker: str = "fresh") -> tuple[float, float, str]:
    """Return the seconds, the CPU seconds and the last line of a run of pytest."""
    environment = {
        **os.environ,
        "EMBEDLOG_APPLICATIONS": "all",
        "EMBEDLOG_APPLICATIONS_BROKER": broker,
    }
    before, start = os.times(), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "", "-p", "no:cacheprovider", *arguments, target],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds, after = time.monotonic() - start, os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    [*_, last] = [
        line for line in done.stdout.splitlines() if re.search(r"\d (passed|failed)", line)
    ]
    return seconds, cpu, last


def empty_tests(kind: str, *arguments: str) -> float:
    """Return the seconds of 200 tests that only ask for the address of a cluster."""
    name = {"none": "", "session": "kafka_session, "}.get(kind, "kafka, ")
    body = f"assert {name.strip(', ')}.bootstrap_servers" if name else "pass"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pytest.ini").write_text("[pytest]\n")
        (Path(folder) / "test_empty.py").write_text(EMPTY.format(name=name, body=body))
        took = [run(folder, *arguments)[0] for _ in range(3)]
    return min(took)


def show(kind: str, *arguments: str, broker: str = "fresh") -> None:
    """Print a line for each application."""
    for name in APPLICATIONS:
        seconds, cpu, last = run(str(FOLDER / name), *arguments, broker=broker)
        print(f"{kind:8} {name:13} {seconds:6.1f} s  CPU {cpu:5.1f} s  {last}", flush=True)


def main(kinds: list[str]) -> None:
    """Print the figures of some kinds of broker."""
    plain = empty_tests("none")
    print(f"200 empty tests {plain:.2f} s", flush=True)
    for kind in kinds or ["fresh", "session", "workers", "real"]:
        if kind == "real":
            with (
                tempfile.TemporaryDirectory() as folder,
                real_kafka(Path(folder), settings={"num.partitions": "1"}) as address,
            ):
                overhead = (empty_tests(kind, f"--kafka={address}") - plain) / 200
                print(f"real: {1000 * overhead:.2f} ms a test", flush=True)
                show(kind, f"--kafka={address}")
        elif kind == "workers":
            show(kind, "-n", "4")
        else:
            overhead = (empty_tests(kind) - plain) / 200
            print(f"{kind}: {1000 * overhead:.2f} ms a test", flush=True)
            show(kind, broker=kind)


if __name__ == "__main__":
    main(sys.argv[1:])
