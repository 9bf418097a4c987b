"""Record the real broker's answers: `python -m tests.golden.record [scenario ...]`.

Starts Apache Kafka from Maven packages, plays the scenarios against it and writes one file each
to `recorded/`. With `--address HOST:PORT` it plays against a broker that is already there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import tests.golden.scenarios  # noqa: F401  (registers them)
from tests.golden.run import SCENARIOS, play
from tests.support.kafka import real_kafka
from tests.support.tools import install

RECORDED = Path(__file__).parent / "recorded"


def record(address: str, names: list[str]) -> int:
    """Play and write `names`; the number of answers kept."""
    RECORDED.mkdir(exist_ok=True)
    count = 0
    for name in names:
        steps = play(address, name, patient=True)
        lines = ",\n".join(json.dumps(step, ensure_ascii=True) for step in steps)
        (RECORDED / f"{name}.json").write_text(f"[\n{lines}\n]\n")
        print(f"{name}: {len(steps)} answers", flush=True)
        count += len(steps)
    return count


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address")
    parser.add_argument("scenario", nargs="*")
    arguments = parser.parse_args()
    names = arguments.scenario or sorted(SCENARIOS)
    if arguments.address:
        total = record(arguments.address, names)
    else:
        install(("debian", "broker"))
        with tempfile.TemporaryDirectory() as folder, real_kafka(Path(folder)) as address:
            total = record(address, names)
    print(f"{total} answers in {RECORDED}")


if __name__ == "__main__":
    main()
