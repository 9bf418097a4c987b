"""Requests through the fault rules of the test kit: none, and a hundred that do not match."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from embedlog.broker.context import RequestContext
from embedlog.testing import Kafka
from tests.benchmarks.table import Row, measure
from wire.api_keys import ApiKey
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

COUNT = 5_000
RULES = 100


def requests() -> dict[str, tuple[int, Any]]:
    """Return requests that cost a broker little, by name."""
    return {
        "Heartbeat": (ApiKey.HEARTBEAT, HeartbeatRequest(group_id="g", member_id="m")),
        "ListOffsets": (
            ApiKey.LIST_OFFSETS,
            ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    ListOffsetsTopic(
                        name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
                    )
                ],
            ),
        ),
    }


def handled(kafka: Kafka, name: str) -> float:
    """Return the processor seconds of the broker's door for all requests of a kind."""
    key, request = requests()[name]
    context = RequestContext(key, 4, client_id="c")
    handle = kafka.cluster.broker().core.handle
    started = time.process_time()
    for _ in range(COUNT):
        handle(context, request)
    return time.process_time() - started


def main() -> None:
    """Print the time of a request at the broker's door without and with rules."""
    for name, field in (("Heartbeat", "group"), ("ListOffsets", "topic")):
        with (
            Kafka(topics={"t": 1}) as bare,
            Kafka(topics={"t": 1}) as others,
            Kafka(topics={"t": 1}) as named,
            Kafka(topics={"t": 1}) as clients,
        ):
            for number in range(RULES):
                wanted: Any = {field: f"no-{number}"}
                others.fault("SyncGroup", group=f"no-{number}", error=1, may_miss=True)
                named.fault(name, error=1, may_miss=True, **wanted)
                clients.fault(name, client_id=f"no-{number}", error=1, may_miss=True)
            rows = {
                "no rules": bare,
                f"{RULES} rules of another API": others,
                f"{RULES} rules of another {field}": named,
                f"{RULES} rules of another client": clients,
            }
            measure(
                f"{name} at the broker's door",
                [Row(title, COUNT, partial(handled, kafka, name)) for title, kafka in rows.items()],
                ours="no rules",
                rounds=15,
            )


if __name__ == "__main__":
    main()
