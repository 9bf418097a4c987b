"""Offsets of a partition whose records are deleted inside an open transaction."""

from __future__ import annotations

from tests.golden import batches
from tests.golden.requests import fetch, make_topic, produce
from tests.golden.run import Run, scenario_on
from tests.golden.transaction_requests import batch, began, ended, warm_up_transactions
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)


def _look(run: Run, topic: tuple[str, bytes], note: str) -> None:
    for isolation_level in (0, 1):
        for timestamp in (-1, -2, -3):
            row = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation_level,
                topics=[ListOffsetsTopic(name=topic[0], partitions=[row])],
            )
            run.send(request, 7, f"{note}: {timestamp} of isolation {isolation_level}")
        for offset in range(6):
            request = fetch(topic, 12, offset, isolation_level=isolation_level)
            run.send(request, 12, f"{note}: fetch at {offset} of isolation {isolation_level}")


@scenario_on("transactions")
def records_of_an_open_transaction_are_deleted(run: Run) -> None:
    warm_up_transactions(run)
    topic, name = make_topic(run), run.group("t")
    producer = began(run, name, (topic, 0))
    for sequence in range(3):
        data = batch(producer, b"x", sequence=sequence)
        run.setup(produce(topic, 9, data, transactional_id=name), 9)
    run.setup(produce(topic, 9, batches.simple(b"plain")), 9)
    _look(run, topic, "an open transaction")
    for offset in (2, 4):
        row = DeleteRecordsPartition(partition_index=0, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic[0], partitions=[row])], timeout_ms=5000
        )
        run.send(request, 2, f"delete up to {offset}")
        _look(run, topic, f"deleted up to {offset}")
    ended(run, name, producer)
    _look(run, topic, "after its end")
