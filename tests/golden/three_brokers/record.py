"""Record three real brokers' answers: `python -m tests.golden.three_brokers.record [scenario ...]`.

Starts a cluster of Apache Kafka for each kind in `clusters.py`, plays the scenarios on it one after
the other and writes one file each to `recorded/`. `--again` writes nothing: it compares the answers
with the recorded ones, and so finds unstable answers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import tests.golden.three_brokers.scenarios  # noqa: F401  (registers them)
from tests.golden.record import keep
from tests.golden.three_brokers.clusters import KINDS
from tests.golden.three_brokers.run import KIND_OF, SCENARIOS, play
from tests.golden.three_brokers.targets import RealCluster
from tests.support.kafka_cluster import KafkaCluster, kafka_cluster
from tests.support.tools import install

RECORDED = Path(__file__).parent / "recorded"


def record(cluster: KafkaCluster, names: list[str], *, again: bool) -> int:
    """Play `names` and write the answers, or compare them; return the number of answers or
    differences.
    """
    RECORDED.mkdir(exist_ok=True)
    count = 0
    for name in names:
        began = time.monotonic()
        steps = play(RealCluster(cluster), name)
        count += keep(steps, RECORDED / f"{name}.json", again=again)
        print(f"  {time.monotonic() - began:.1f} s", flush=True)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--again", action="store_true", help="compare instead of writing")
    parser.add_argument("scenario", nargs="*")
    arguments = parser.parse_args()
    names = arguments.scenario or list(SCENARIOS)
    install(("debian", "broker"))
    total = 0
    for name, kind in KINDS.items():
        played = [each for each in names if KIND_OF[each] == name]
        if played:
            settings, controllers = kind.kafka_settings, kind.controllers
            with (
                tempfile.TemporaryDirectory() as folder,
                kafka_cluster(Path(folder), settings=settings, controllers=controllers) as cluster,
            ):
                total += record(cluster, played, again=arguments.again)
    print(f"{total} answers {'differ' if arguments.again else 'recorded'}")
    sys.exit(bool(arguments.again and total))


if __name__ == "__main__":
    main()
