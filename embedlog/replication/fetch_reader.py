"""Read partitions for a fetch, without waiting: the limits of the fetch, and errors.

An error in one partition becomes the answer of that partition. The other partitions are still read.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.replication.partition import Isolation, Partition
from wire.error_codes import ErrorCode
from wire.schema import bare
from wire.schemas.fetch import AbortedTransaction, EpochEndOffset, PartitionData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from embedlog.replication.fetch_params import FetchParams
    from embedlog.replication.fetch_session import FetchPartition
    from embedlog.replication.throttles import Throttle

    Partitions = Mapping[tuple[str, int], Partition]

NO_RECORDS = b""
"""The record set of an answer without records. It is not null, because C clients crash on null."""

READ_ERRORS = (errors.KafkaError, errors.CorruptRecord)
"""Errors of one partition that become its answer. Any other exception fails the whole fetch."""

_DEFAULTS = PartitionData()
_NO_DIVERGING_EPOCH = _DEFAULTS.diverging_epoch
_NO_LEADER = _DEFAULTS.current_leader
_NO_SNAPSHOT = _DEFAULTS.snapshot_id
"""The answers share these three default objects, to save making them."""

UNDEFINED = -1
_CONSUMER_MAX = -1


class FetchRead:
    """The result of one pass over the partitions."""

    __slots__ = ("asked", "cut_at", "data", "must_answer", "size")

    def __init__(self, asked: Sequence[FetchPartition], data: list[PartitionData]) -> None:
        self.asked = asked
        self.data = data
        """The answers, one for each partition of `asked`."""
        self.size = 0
        self.must_answer = False
        """Whether the answer must not wait for `min_bytes`: it has an error (other than an unknown
        partition), a diverging epoch, or another replica to read from.
        """
        self.cut_at: int | None = None
        """Index in `asked` of the first partition that was left out because `target_bytes` were
        reached, or None.
        """


def read_partitions(
    partitions: Partitions,
    params: FetchParams,
    wanted: Sequence[FetchPartition],
    load: Callable[[str, int], Partition | None],
) -> FetchRead:
    """Read each wanted partition within the limits of the fetch.

    The first batch is returned whole even if it is larger than every limit (KIP-74). Later
    partitions get the whole batches that fit into the remaining room, and none after
    `target_bytes`. An unknown partition gets an error, but the answer may still wait for records of
    other partitions. `load` loads partitions that are missing in `partitions`.
    """
    data: list[PartitionData] = []
    result = FetchRead(wanted, data)
    total_size = 0
    room = params.max_bytes
    for asked in wanted:
        try:
            partition = partitions.get(asked.key) or load(*asked.key)
            if partition is None:
                data.append(refusal(asked.partition, _unknown(params, asked)))
                continue
            found = read_partition(partition, params, asked, room=room, min_one=not total_size)
        except READ_ERRORS as error:
            refused = refusal(asked.partition, error)
            refused.aborted_transactions = None
            data.append(refused)
            result.must_answer = True
            continue
        data.append(found)
        records = found.records
        assert records is not None
        if size := len(records):
            result.size = total_size = total_size + size
            room -= size
            if room <= 0:
                room = 0
            elif total_size >= params.target_bytes:
                room = 0
                if len(data) < len(wanted):
                    result.cut_at = len(data)
        elif (
            found.diverging_epoch is not _NO_DIVERGING_EPOCH
            or found.preferred_read_replica != UNDEFINED
        ):
            result.must_answer = True
    return result


def read_partition(
    partition: Partition, params: FetchParams, asked: FetchPartition, *, room: int, min_one: bool
) -> PartitionData:
    """Return whole batches from `asked.fetch_offset` on, up to the end for the reader's isolation.

    Raises:
        NotLeaderOrFollower: also if the follower has no replica, or has restarted after its fetch.
        FencedLeaderEpoch, UnknownLeaderEpoch: see `Partition.check_leader`.
        InconsistentTopicId: the client knows the id of a deleted topic of the same name.
        OffsetOutOfRange: the log does not have the offset.
        UnknownServerError: the limit is negative; Kafka answers the same.
    """
    if params.replica_id > _CONSUMER_MAX:
        _check_follower(partition, params)
    if params.uses_topic_ids and asked.topic_id != partition.topic_id:
        raise errors.InconsistentTopicId()
    epoch = asked.current_leader_epoch
    if not partition.is_leader or (epoch >= 0 and epoch != partition.leader_epoch):
        partition.check_leader(max(epoch, UNDEFINED), may_follow=params.may_read_followers)
    max_bytes = asked.max_bytes if asked.max_bytes < room else room
    if max_bytes < 0:
        raise errors.UnknownServerError()
    log, isolation = partition.log, params.isolation
    # Set each field once: a constructor would first set the defaults and take twice as long.
    found = bare(PartitionData)
    found.partition_index = asked.partition
    found.error_code = 0
    found.high_watermark = end_offset = log.offsets.high_watermark
    found.last_stable_offset = log.offsets.last_stable_offset
    found.log_start_offset = log.offsets.log_start_offset
    found.diverging_epoch = _NO_DIVERGING_EPOCH
    found.current_leader = _NO_LEADER
    found.snapshot_id = _NO_SNAPSHOT
    found.aborted_transactions = None
    found.preferred_read_replica = UNDEFINED
    found.records = NO_RECORDS
    if isolation == Isolation.LAST_STABLE:
        found.aborted_transactions = []
        end_offset = found.last_stable_offset
    elif isolation == Isolation.LOG_END:
        end_offset = log.log_end_offset
    offset = asked.fetch_offset
    if asked.last_fetched_epoch >= 0:
        end = diverging_epoch(partition, asked)
        if end is not None:
            found.diverging_epoch = end
            return found
    if partition.remote_replicas is not None and _has_none_now(partition, params, found, offset):
        return found
    # Read only up to the offsets in the answer: the session sends later offsets next time.
    read = log.reader.read(offset, max_bytes=max_bytes, end_offset=end_offset, min_one=min_one)
    found.records = read[0]
    if isolation == Isolation.LOG_END:
        _count(partition, params.leader_throttle, len(read[0]))
    elif isolation == Isolation.LAST_STABLE and read.records:
        found.aborted_transactions = [
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in log.transactions.aborted(offset, read.next_offset)
        ]
    return found


def is_at_end(partition: Partition, params: FetchParams, asked: FetchPartition) -> bool:
    """Return True if a read is sure to find no records and no error, otherwise False."""
    log = partition.log
    if params.isolation == Isolation.HIGH_WATERMARK:
        end_offset = log.offsets.high_watermark
    else:
        end_offset = log.offsets.last_stable_offset
    epoch = asked.current_leader_epoch
    return (
        asked.fetch_offset == end_offset
        and partition.is_leader
        and (epoch < 0 or epoch == partition.leader_epoch)
        and asked.last_fetched_epoch < 0
        and asked.max_bytes >= 0
        and not params.rack_id
        and params.replica_id <= _CONSUMER_MAX
        and (not params.uses_topic_ids or asked.topic_id == partition.topic_id)
        # If the log ends in damage, the reader must get the error and not wait for records.
        and log.failure is None
    )


def readable_size(partition: Partition, params: FetchParams, asked: FetchPartition) -> int:
    """Return how many bytes a parked fetch could read now; 0 if it should go on waiting.

    The size is exact up to the partition's limit. It is `min_bytes`, which ends the wait, if:
    - `min_bytes` is at most 1 and there are records
    - a new offset of the leader is worth an answer, see `_is_news`
    - the reader's history diverges from the log's
    - the offset lies in an older segment than the end: a fetch reads from one segment only

    Raises:
        KafkaError: the answer for the partition would be an error.
    """
    log = partition.log
    offset = asked.fetch_offset
    end_offset = partition.end_offset(params.isolation)
    if params.replica_id > _CONSUMER_MAX and is_throttled(partition, params):
        end_offset = min(offset, end_offset)
    if offset < end_offset and params.min_bytes <= 1:
        return params.min_bytes  # records and errors are both worth an answer
    epoch = asked.current_leader_epoch
    if not partition.is_leader or 0 <= epoch != partition.leader_epoch:
        partition.check_leader(max(epoch, UNDEFINED), may_follow=params.may_read_followers)
    if params.isolation == Isolation.LOG_END and _is_news(partition, params, asked):
        return params.min_bytes
    if asked.last_fetched_epoch >= 0 and diverging_epoch(partition, asked) is not None:
        return params.min_bytes
    if offset >= end_offset:
        if offset > end_offset and offset > log.log_end_offset:
            raise errors.OffsetOutOfRange()
        return 0
    if log.chain.holding(offset) is not log.chain.holding(end_offset):
        return params.min_bytes
    read = log.reader.read(offset, max_bytes=asked.max_bytes, end_offset=end_offset, min_one=False)
    return len(read.records) if read.next_offset >= end_offset else asked.max_bytes


def _is_news(partition: Partition, params: FetchParams, asked: FetchPartition) -> bool:
    """Return whether the leader's offsets end the wait of a follower's fetch.

    A new log start offset ends it, because DeleteRecords waits until the followers have it. A new
    high watermark ends it if consumers read from followers: else they get records 0.5 s late.
    """
    if asked.answered_log_start_offset == UNDEFINED:
        return False  # not in a session, or about to be answered
    offsets = partition.log.offsets
    return asked.answered_log_start_offset != offsets.log_start_offset or (
        params.tells_high_watermark and asked.answered_high_watermark != offsets.high_watermark
    )


def refusal(partition: int, error: Exception) -> PartitionData:
    """Return the answer for an unreadable partition: an error code, no offsets, no records.

    For a damaged log it is CORRUPT_MESSAGE, as in Kafka: clients raise the error or report it to
    their application. After KAFKA_STORAGE_ERROR they would look for another leader and repeat the
    fetch for ever.
    """
    code = error.code if isinstance(error, errors.KafkaError) else ErrorCode.CORRUPT_MESSAGE
    return PartitionData(
        partition_index=partition,
        error_code=code,
        high_watermark=UNDEFINED,
        records=NO_RECORDS,
    )


def _unknown(params: FetchParams, asked: FetchPartition) -> errors.KafkaError:
    if params.uses_topic_ids and not asked.topic:
        return errors.UnknownTopicId()
    return errors.UnknownTopicOrPartition()


def _check_follower(partition: Partition, params: FetchParams) -> None:
    remote = partition.remote_replicas
    if (
        remote is None
        or remote.find(params.replica_id) is None
        or remote.is_outdated(params.replica_id, params.replica_epoch)
    ):
        raise errors.NotLeaderOrFollower()


def _has_none_now(
    partition: Partition, params: FetchParams, found: PartitionData, offset: int
) -> bool:
    """Return whether the reader gets no records now.

    A throttled follower must wait. A consumer that has a replica in its own rack must read there:
    `found` then names the replica.
    """
    if params.replica_id > _CONSUMER_MAX:
        return is_throttled(partition, params)
    remote = partition.remote_replicas
    if params.rack_id and remote is not None:
        found.preferred_read_replica = remote.preferred_for(params.rack_id, offset)
    return found.preferred_read_replica != UNDEFINED


def is_throttled(partition: Partition, params: FetchParams) -> bool:
    """Return whether a follower must wait because the leader's throttle is exceeded.

    A follower in the ISR never waits.
    """
    throttle = params.leader_throttle
    if throttle is None or params.replica_id in partition.isr:
        return False
    return throttle.covers(partition.topic, partition.index) and throttle.is_exceeded


def _count(partition: Partition, throttle: Throttle | None, size: int) -> None:
    if size and throttle is not None and throttle.covers(partition.topic, partition.index):
        throttle.record(size)


def diverging_epoch(partition: Partition, asked: FetchPartition) -> EpochEndOffset | None:
    """Return where the reader's history diverges from this log's, or None (KIP-595).

    Raises:
        OffsetOutOfRange: this log does not know the epoch, or no longer has the offset.
    """
    epoch, end_offset = partition.log.epochs.end_offset_for(asked.last_fetched_epoch)
    if (
        UNDEFINED in (epoch, end_offset)
        or asked.fetch_offset < partition.log.offsets.log_start_offset
    ):
        raise errors.OffsetOutOfRange()
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None
