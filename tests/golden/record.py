"""Record the real broker's answers: `python -m tests.golden.record [scenario ...]`.

Starts Apache Kafka from Maven packages, once for each set of settings in `brokers.py`, plays the
scenarios against it and writes one file each to `recorded/`. `--again` writes nothing: it compares
the answers with the recorded ones, and so finds unstable answers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import tests.golden.scenarios  # noqa: F401  (registers them)
from tests.golden.brokers import BROKERS, PLUGIN
from tests.golden.run import BROKER_OF, SCENARIOS, play
from tests.golden.targets import Address
from tests.support.kafka import real_kafka
from tests.support.tools import compiled_java, install

RECORDED = Path(__file__).parent / "recorded"


def record(address: str, names: list[str], *, again: bool) -> int:
    """Play `names` and write the answers, or compare them; return the number of answers or
    differences.
    """
    RECORDED.mkdir(exist_ok=True)
    count = 0
    for name in names:
        steps = play(Address(address, is_patient=True), name)
        count += keep(steps, RECORDED / f"{name}.json", again=again)
    return count


def keep(steps: list[dict[str, Any]], path: Path, *, again: bool) -> int:
    """Write a scenario's answers, or compare them; return the number of answers or differences."""
    text = _text(steps)
    lines = text.splitlines()[1:-1]
    if not again:
        path.write_text(text)
        print(f"{path.stem}: {len(lines)} answers", flush=True)
        return len(lines)
    count = 0
    for before, now in zip(path.read_text().splitlines()[1:-1], lines, strict=True):
        if before != now:
            print(f"{path.stem}\n  before {before}\n  now    {now}", flush=True)
            count += 1
    return count


def _text(steps: list[dict[str, Any]]) -> str:
    lines = ",\n".join(json.dumps(step, ensure_ascii=True) for step in steps)
    return f"[\n{lines}\n]\n"


def with_plugin(classes: Path) -> str:
    """Compile the plugin for descriptions of topologies; return the broker's class path."""
    return compiled_java(Path(__file__).parent / "Shelf.java", classes, ("broker",))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--again", action="store_true", help="compare instead of writing")
    parser.add_argument("scenario", nargs="*")
    arguments = parser.parse_args()
    names = arguments.scenario or sorted(SCENARIOS)
    install(("debian", "broker", "streams"))
    total = 0
    for broker, settings in BROKERS.items():
        played = [name for name in names if BROKER_OF[name] == broker]
        if played:
            with (
                tempfile.TemporaryDirectory() as classes,
                tempfile.TemporaryDirectory() as folder,
                real_kafka(
                    Path(folder),
                    settings=settings,
                    class_path=with_plugin(Path(classes)) if PLUGIN in settings else None,
                ) as address,
            ):
                total += record(address, played, again=arguments.again)
    print(f"{total} answers {'differ' if arguments.again else 'recorded'}")
    sys.exit(bool(arguments.again and total))


if __name__ == "__main__":
    main()
