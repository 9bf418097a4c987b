"""Short forms of the requests of share groups' members to the leaders of partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embedlog.common import uuid_to_text
from tests.golden.batches import BASE_TIMESTAMP, simple
from tests.golden.requests import Topic, is_written, produce
from tests.golden.run import Run
from wire.schemas import delete_share_group_state, share_acknowledge, share_fetch
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.schemas.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
    PartitionData,
)
from wire.schemas.read_share_group_state import PartitionData as ReadPartition
from wire.schemas.read_share_group_state import ReadShareGroupStateRequest, ReadStateData
from wire.schemas.read_share_group_state_summary import (
    PartitionData as SummaryPartition,
)
from wire.schemas.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)

ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0
LATEST = 2
WAIT_MS = 5000
"""A wait that ends early, with the records."""
GROUP_RESOURCE = 32

Place = tuple[Topic, int]
Batches = Sequence[tuple[int, int, Sequence[int]]]


def initialize(
    group: str, topic: Topic, *partitions: int, start: int = 0, epoch: int = 1
) -> InitializeShareGroupStateRequest:
    """InitializeShareGroupState of some partitions of a topic."""
    rows = [PartitionData(partition=p, state_epoch=epoch, start_offset=start) for p in partitions]
    return InitializeShareGroupStateRequest(
        group_id=group, topics=[InitializeStateData(topic_id=topic[1], partitions=rows)]
    )


def read_state(group: str, topic: Topic, partition: int = 0) -> ReadShareGroupStateRequest:
    """ReadShareGroupState of one partition."""
    rows = [ReadPartition(partition=partition, leader_epoch=0)]
    return ReadShareGroupStateRequest(
        group_id=group, topics=[ReadStateData(topic_id=topic[1], partitions=rows)]
    )


def delete_state(
    group: str, topic: Topic, partition: int = 0
) -> delete_share_group_state.DeleteShareGroupStateRequest:
    """DeleteShareGroupState of one partition."""
    rows = [delete_share_group_state.PartitionData(partition=partition)]
    data = delete_share_group_state.DeleteStateData(topic_id=topic[1], partitions=rows)
    return delete_share_group_state.DeleteShareGroupStateRequest(group_id=group, topics=[data])


def read_summary(group: str, topic: Topic, partition: int = 0) -> ReadShareGroupStateSummaryRequest:
    """ReadShareGroupStateSummary of one partition."""
    rows = [SummaryPartition(partition=partition, leader_epoch=0)]
    return ReadShareGroupStateSummaryRequest(
        group_id=group, topics=[ReadStateSummaryData(topic_id=topic[1], partitions=rows)]
    )


def begin_state(
    run: Run, group: str, topic: Topic, *partitions: int, start: int = 0, epoch: int = 1
) -> None:
    """Initialise the state of share partitions, without a step."""
    for partition in partitions or (0,):
        key = f"{group}:{uuid_to_text(topic[1])}:{partition}"
        find = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
        while run.setup(find, 6).coordinators[0].error_code:
            run.let_pass(50)
        request = initialize(group, topic, partition, start=start, epoch=epoch)
        while run.setup(request, 0).results[0].partitions[0].error_code:
            run.let_pass(50)


def configure(run: Run, group: str, **settings: str) -> None:
    """Set settings of a group, with underscores for dots, without a step."""
    rows = [
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=rows)
    answer = run.setup(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert not answer.responses[0].error_code, answer


def fill(run: Run, topic: Topic, *sizes: int, partition: int = 0) -> None:
    """Produce batches of `sizes` records, without a step."""
    for size in sizes:
        batch = simple(*[b"%d" % index for index in range(size)], base_timestamp=BASE_TIMESTAMP)
        while not is_written(run.setup(produce(topic, 9, batch, partition=partition), 9)):
            run.let_pass(50)


def fetch_request(
    group: str | None,
    member: str | None,
    epoch: int,
    *places: Place,
    acknowledged: Mapping[Place, Batches] | None = None,
    forgotten: Sequence[Place] = (),
    max_wait_ms: int = WAIT_MS,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    max_records: int = 500,
    batch_size: int = 500,
    **fields: Any,
) -> share_fetch.ShareFetchRequest:
    """ShareFetch, each place a topic entry of its own."""
    wanted = {(name, id, number): () for (name, id), number in places}
    for ((name, id), number), batches in (acknowledged or {}).items():
        wanted[name, id, number] = batches  # type: ignore[assignment]
    return share_fetch.ShareFetchRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        max_records=max_records,
        batch_size=batch_size,
        topics=[
            share_fetch.FetchTopic(
                topic_id=id,
                partitions=[
                    share_fetch.FetchPartition(
                        partition_index=number,
                        acknowledgement_batches=[
                            share_fetch.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=list(types)
                            )
                            for first, last, types in batches
                        ],
                    )
                ],
            )
            for (_, id, number), batches in wanted.items()
        ],
        forgotten_topics_data=[
            share_fetch.ForgottenTopic(topic_id=topic[1], partitions=[number])
            for topic, number in forgotten
        ],
        **fields,
    )


def acknowledge_request(
    group: str | None,
    member: str | None,
    epoch: int,
    acknowledged: Mapping[Place, Batches],
    **fields: Any,
) -> share_acknowledge.ShareAcknowledgeRequest:
    """ShareAcknowledge, each place a topic entry of its own."""
    return share_acknowledge.ShareAcknowledgeRequest(
        group_id=group,
        member_id=member,
        share_session_epoch=epoch,
        topics=[
            share_acknowledge.AcknowledgeTopic(
                topic_id=topic[1],
                partitions=[
                    share_acknowledge.AcknowledgePartition(
                        partition_index=number,
                        acknowledgement_batches=[
                            share_acknowledge.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=list(types)
                            )
                            for first, last, types in batches
                        ],
                    )
                ],
            )
            for (topic, number), batches in acknowledged.items()
        ],
        **fields,
    )


class Sharer:
    """A member with its session: each request that is sent takes the next epoch."""

    def __init__(self, run: Run, group: str, member: str = "one", *, on: str = "") -> None:
        self.run = run
        self.group = group
        self.member = member
        self.on = on
        self.epoch = 0

    def _next(self, epoch: int | None) -> int:
        if epoch is not None:
            return epoch
        self.epoch += 1
        return self.epoch - 1

    def fetch(
        self,
        note: str,
        *places: Place,
        version: int = LATEST,
        epoch: int | None = None,
        keep: bool = True,
        **fields: Any,
    ) -> Any:
        """One step: ShareFetch in the next epoch, or in `epoch`."""
        request = fetch_request(self.group, self.member, self._next(epoch), *places, **fields)
        if keep:
            return self.run.send(request, version, note, on=self.on)
        return self.run.setup(request, version, on=self.on)

    def begin_fetch(
        self, note: str, *places: Place, version: int = LATEST, keep: bool = True, **fields: Any
    ) -> None:
        """One step: begin a ShareFetch that may wait; `finish` has its answer."""
        request = fetch_request(self.group, self.member, self._next(None), *places, **fields)
        self.run.begin(request, version, note, on=self.on, keep=keep)

    def finish(self) -> Any:
        """One step: the answer to the fetch that waits."""
        return self.run.finish(on=self.on)

    def acknowledge(
        self,
        note: str,
        acknowledged: Mapping[Place, Batches],
        *,
        version: int = LATEST,
        epoch: int | None = None,
        keep: bool = True,
        **fields: Any,
    ) -> Any:
        """One step: ShareAcknowledge in the next epoch, or in `epoch`."""
        request = acknowledge_request(
            self.group, self.member, self._next(epoch), acknowledged, **fields
        )
        if keep:
            return self.run.send(request, version, note, on=self.on)
        return self.run.setup(request, version, on=self.on)

    def open(self, *places: Place) -> None:
        """Open the session without fetching, without a step."""
        self.fetch("open", *places, max_records=0, keep=False)
