"""The committed offsets of a group, fetched with raw requests.

librdkafka's admin client is not used: version 2.16 crashes with a null pointer if a starting
coordinator is still loading, and waits for ever for a coordinator that it has forgotten.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from tests.interop.groups.history import Partition
from tests.server.wire_client import WireClient
from wire.error_codes import ErrorCode
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)

STARTING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
SECONDS_MAX = 60


def committed_offsets(
    address: str, group: str, partitions: Iterable[Partition]
) -> dict[Partition, int]:
    """Return the committed offset of each partition; 0 for none.

    Raises:
        AssertionError: the coordinator does not answer within a minute.
    """
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        # A starting broker refuses connections, or closes them in the middle.
        with (
            contextlib.suppress(OSError, AssertionError),
            WireClient((host, int(port))) as client,
        ):
            client.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4)
            answer = _ask(client, group, partitions)
            if answer.error_code not in STARTING:
                assert answer.error_code == ErrorCode.NONE, answer
                return {
                    (topic.name, each.partition_index): max(each.committed_offset, 0)
                    for topic in answer.topics
                    for each in topic.partitions
                }
        time.sleep(0.1)
    raise AssertionError(f"the coordinator of {group} at {address} does not answer")


def _ask(
    client: WireClient, group: str, partitions: Iterable[Partition]
) -> OffsetFetchResponseGroup:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    topics = [
        OffsetFetchRequestTopics(name=topic, partition_indexes=numbers)
        for topic, numbers in by_topic.items()
    ]
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
    found: OffsetFetchResponseGroup = client.ask(OffsetFetchRequest(groups=[asked]), 8).groups[0]
    return found
