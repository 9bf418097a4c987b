"""Admin calls about the records, offsets and producers of partitions."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.calls import told
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import ItemResults, ProducerState, results_of
from embedlog.client.consumer.offset_lookup import OffsetLookup
from embedlog.common import TopicPartition
from embedlog.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.client.consumer.offset_lookup import OffsetAndTimestamp
    from wire.schemas.delete_records import DeleteRecordsResponse
    from wire.schemas.describe_producers import DescribeProducersResponse
    from wire.schemas.describe_producers import ProducerState as DescribedProducer

_ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
_LOWEST_SPEC = -128
"""Lowest number that `list_offsets` accepts. Newer brokers may know more negative specs than
`OffsetSpec`, so the broker checks them."""


class RecordAdmin(AdminPart):
    """Deletes records, looks up offsets, describes producers."""

    @in_turn
    def delete_records(
        self,
        offsets: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, int]:
        """Delete records before an offset (-1: all); return each partition's new first offset."""
        from wire.schemas.delete_records import (
            DeleteRecordsPartition,
            DeleteRecordsRequest,
            DeleteRecordsTopic,
        )

        given = arguments.by_partition(offsets, "delete_records", "offsets", "offset")
        wanted = {
            key: arguments.offset(offset, "delete_records", f"offsets: {key}", lowest=-1)
            for key, offset in given.items()
        }

        def request_for(keys: list[TopicPartition]) -> DeleteRecordsRequest:
            topics: dict[str, DeleteRecordsTopic] = {}
            for key in keys:
                topic = topics.setdefault(key.topic, DeleteRecordsTopic(name=key.topic))
                topic.partitions.append(
                    DeleteRecordsPartition(partition_index=key.partition, offset=wanted[key])
                )
            return DeleteRecordsRequest(
                topics=list(topics.values()), timeout_ms=self._calls.timeout(timeout_ms)
            )

        def take(response: DeleteRecordsResponse) -> dict[TopicPartition, tuple[int, int]]:
            return {
                TopicPartition(topic.name, each.partition_index): (
                    each.error_code,
                    each.low_watermark,
                )
                for topic in response.topics
                for each in topic.partitions
            }

        outcomes = self._calls.to_leaders(wanted, request_for, take, timeout_ms)
        return results_of(outcomes)

    @in_turn
    def describe_producers(
        self,
        partitions: Iterable[TopicPartition | tuple[str, int]],
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, list[ProducerState]]:
        """Return the active producers of partitions, as the partitions' leaders know them."""
        from wire.schemas.describe_producers import DescribeProducersRequest, TopicRequest

        def request_for(keys: list[TopicPartition]) -> DescribeProducersRequest:
            topics: dict[str, TopicRequest] = {}
            for key in keys:
                topic = topics.setdefault(key.topic, TopicRequest(name=key.topic))
                topic.partition_indexes.append(key.partition)
            return DescribeProducersRequest(topics=list(topics.values()))

        def take(
            response: DescribeProducersResponse,
        ) -> dict[TopicPartition, tuple[int, list[ProducerState]]]:
            return {
                TopicPartition(topic.name, each.partition_index): (
                    each.error_code,
                    [_producer_state(producer) for producer in each.active_producers],
                )
                for topic in response.topics
                for each in topic.partitions
            }

        wanted = arguments.partitions(partitions, "describe_producers")
        outcomes = self._calls.to_leaders(wanted, request_for, take, timeout_ms)
        return results_of(outcomes)

    @in_turn
    def list_offsets(
        self,
        specs: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, OffsetAndTimestamp | None]:
        """Return the offset of each partition for an `OffsetSpec` or a timestamp (ms).

        For a timestamp it is the offset of the first record with this timestamp or a later one;
        None if there is no such record. If only some partitions have no answer in time, they fail
        with RequestTimedOut.
        """
        given = arguments.by_partition(specs, "list_offsets", "specs", "OffsetSpec or timestamp")
        wanted = {
            key: arguments.timestamp_ms(
                stamp,
                "list_offsets",
                f"specs: {key}",
                lowest=_LOWEST_SPEC,
                alternative="an OffsetSpec, such as OffsetSpec.LATEST, or ",
            )
            for key, stamp in given.items()
        }
        if isolation_level not in _ISOLATION_LEVELS:
            raise ValueError(
                f"list_offsets(isolation_level={isolation_level!r}): must be one of "
                f"{', '.join(_ISOLATION_LEVELS)}"
            )
        settings = {**self._settings, "isolation.level": isolation_level}
        lookup = OffsetLookup(
            self._transport, self._metadata, settings, wanted, self._calls.arrived, may_fail=True
        )
        silent: dict[TopicPartition, TimedOut] = {}
        try:
            self._calls.drive(
                lambda: lookup.is_done,
                timeout_ms,
                lookup.advance,
                reason=lambda: lookup.last_refusal,
            )
        except TimedOut:
            for key in wanted.keys() - lookup.found.keys() - lookup.failed.keys():
                reason = lookup.refusal_of(key)
                silent[key] = TimedOut(f"{key}: {reason or 'its leader did not answer in time'}")
            if len(silent) == len(wanted):
                raise
        return results_of(told({**lookup.found, **lookup.failed}, silent))


def _producer_state(described: DescribedProducer) -> ProducerState:
    return ProducerState(
        described.producer_id,
        described.producer_epoch,
        last_sequence=described.last_sequence,
        last_timestamp_ms=described.last_timestamp,
        coordinator_epoch=described.coordinator_epoch,
        current_transaction_start_offset=described.current_txn_start_offset,
    )
