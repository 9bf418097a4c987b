"""The look-up of a follower whose fetch offset the leader does not have.

    the leader's end is lower      truncate the log to it: an unclean leader lacks the records after
    the leader's start is higher   empty the log and continue there: the records between are deleted
    neither                        continue at the end of the log

The look-up asks the leader for its end and then for its start, each by a ListOffsets request. An
error ends the look-up; if the next fetch is out of range as well, a new look-up begins.
"""

from __future__ import annotations

from embedlog import errors
from wire.schemas.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.replication.fetcher.followed_partition import FollowedPartition
    from embedlog.runtime.pending import Pending
    from wire.schemas.list_offsets import ListOffsetsResponse

    Send = Callable[[ListOffsetsRequest], Pending[ListOffsetsResponse]]

LATEST = -1
EARLIEST = -2


class OutOfRangeLookup:
    """The look-up for one partition. `send` sends a request to the leader; its answer wakes the
    fetcher.
    """

    def __init__(self, followed: FollowedPartition, node_id: int, send: Send) -> None:
        self.followed = followed
        self._node_id = node_id
        self._send = send
        self._ask(LATEST)

    def step(self) -> bool:
        """Continue if the leader has answered; return whether the look-up is finished.

        Raises:
            KafkaError: the leader refused or was not reached, or this broker's disk refuses.
        """
        while self._pending.done():
            offset = self._offset()
            if self._timestamp == EARLIEST:
                self.followed.start_at(offset)
                return True
            if self.followed.truncate_behind(offset):
                return True
            self._ask(EARLIEST)
        return False

    def _ask(self, timestamp: int) -> None:
        self._timestamp = timestamp
        partition = self.followed.partition
        asked = ListOffsetsPartition(
            partition_index=partition.index,
            current_leader_epoch=self.followed.leader_epoch,
            timestamp=timestamp,
        )
        topic = ListOffsetsTopic(name=partition.topic, partitions=[asked])
        self._pending = self._send(ListOffsetsRequest(replica_id=self._node_id, topics=[topic]))

    def _offset(self) -> int:
        [topic] = self._pending.result().topics
        [found] = topic.partitions
        if found.error_code:
            raise errors.error_for(found.error_code)
        return found.offset
