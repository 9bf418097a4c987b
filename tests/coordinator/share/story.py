"""A story of share partitions, told to a broker: Apache Kafka or embedlog.

`python -m tests.coordinator.share.story` tells it to Apache Kafka, and keeps the segment of
`__share_group_state` with the answers about the states that it leaves.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.golden.brokers import BROKERS
from tests.golden.requests import creation
from tests.golden.run import Run
from tests.golden.share_state_requests import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    delete,
    initialize,
    read,
    summary,
    warm_up,
    write,
)
from tests.golden.targets import Address
from tests.support.kafka import real_kafka
from tests.support.tools import install

RECORDED = Path(__file__).parent / "kafka_segment.json"
SETTINGS = BROKERS["share state"]
TOPIC = "orders"
GROUPS = ("busy", "idle", "anew", "gone", "undecided")
SEGMENT = "00000000000000000000.log"


def make_topic(run: Run) -> bytes:
    """Create the topic; return its id."""
    (made,) = run.setup(creation(TOPIC, partitions=2), 7).topics
    assert made.error_code == 0, made
    return bytes(made.topic_id)


def tell(run: Run, topic: bytes) -> None:
    """Write snapshots, updates and tombstones of all kinds."""
    warm_up(run, (TOPIC, topic))
    run.setup(delete(run.group("warm"), topic), 0)
    for group in GROUPS:
        start = -1 if group == "undecided" else 3
        run.setup(initialize(group, topic, state_epoch=2, start=start), 0)
        run.setup(read(group, topic, leader_epoch=1), 0)
    for first in range(3, 40, 4):
        batches = (first, first + 3, ACKNOWLEDGED, 1), (first + 2, first + 9, AVAILABLE, 2)
        request = write(
            "busy", topic, *batches, state_epoch=2, leader_epoch=1, start=first - 2,
            complete=first,
        )  # fmt: skip
        run.setup(request, 1)
    late = write(
        "idle", topic, (7, 9, ARCHIVED, 5), state_epoch=2, leader_epoch=1, start=4, complete=3
    )
    run.setup(late, 1)
    run.setup(initialize("anew", topic, state_epoch=6, start=11), 0)
    run.setup(delete("gone", topic), 0)
    run.setup(write("undecided", topic, (5, 6, ACKNOWLEDGED, 1), state_epoch=2, leader_epoch=1), 1)


def seen(run: Run, topic: bytes) -> dict[str, Any]:
    """Return the states by group, as requests see them."""
    found: dict[str, Any] = {}
    for group in GROUPS:
        (row,) = run.setup(summary(group, topic), 1).results[0].partitions
        (state,) = run.setup(read(group, topic, leader_epoch=1), 0).results[0].partitions
        found[group] = {
            "state_epoch": row.state_epoch,
            "leader_epoch": row.leader_epoch,
            "start_offset": row.start_offset,
            "delivery_complete_count": row.delivery_complete_count,
            "error_code": state.error_code,
            "batches": [
                [each.first_offset, each.last_offset, each.delivery_state, each.delivery_count]
                for each in state.state_batches
            ],
        }
    return found


def main() -> None:
    install(("debian", "broker"))
    with tempfile.TemporaryDirectory() as folder:
        with real_kafka(Path(folder), settings=SETTINGS) as address:
            run = Run(Address(address, is_patient=True), "story")
            topic = make_topic(run)
            tell(run, topic)
            states = seen(run, topic)
            run.close()
        segment = (Path(folder) / "data" / "__share_group_state-0" / SEGMENT).read_bytes()
    kept = {"topic_id": topic.hex(), "states": states, "segment": segment.hex()}
    RECORDED.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{len(segment)} bytes")


if __name__ == "__main__":
    main()
