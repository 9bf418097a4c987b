"""`Presets`: the faults that authors of clients inject most, by name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from embedlog.testing.faults.options import FaultOptions, TriggerOptions
    from embedlog.testing.faults.rule import FaultRule

MEMBERSHIP = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat")
COMMITS = ("OffsetCommit", "OffsetFetch")
TRANSACTIONS = ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn")


class Presets:
    """Named faults. Each takes the matchers and triggers of `Kafka.fault`, all of them optional.

    with kafka.faults.coordinator_moves(group="workers", times=2): ...
    """

    def add(self, *apis: str, **given: Unpack[FaultOptions]) -> FaultRule:
        """Make a rule: see `Kafka.fault`."""
        raise AssertionError("the list of rules makes them")

    # Producers

    def not_enough_replicas(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Refuse records, as a leader with too few in-sync replicas does."""
        return self.add("Produce", error="NOT_ENOUGH_REPLICAS", **given)

    def lost_acknowledgement(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Append records, and break the connection before the answer."""
        return self.add("Produce", action="cut-after-apply", **given)

    def append_timed_out(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Append records, and answer that the replicas did not follow in time."""
        return self.add("Produce", error="REQUEST_TIMED_OUT", **given)

    def producer_forgotten(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Refuse records with UNKNOWN_PRODUCER_ID: the log has lost the producer's records."""
        return self.add("Produce", error="UNKNOWN_PRODUCER_ID", **given)

    # Partitions

    def leader_moves(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Answer records and fetches with the error that another broker leads."""
        return self.add("Produce", "Fetch", error="NOT_LEADER_OR_FOLLOWER", **given)

    def disk_fails(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Answer with KAFKA_STORAGE_ERROR to records and fetches."""
        return self.add("Produce", "Fetch", error="KAFKA_STORAGE_ERROR", **given)

    def topic_unknown(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Answer that the broker does not know a topic yet, as shortly after its creation."""
        return self.add("Metadata", error="UNKNOWN_TOPIC_OR_PARTITION", **given)

    def not_authorized(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Refuse records, fetches and metadata of a topic."""
        return self.add("Metadata", "Produce", "Fetch", error="TOPIC_AUTHORIZATION_FAILED", **given)

    # Groups

    def coordinator_moves(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Answer requests of a group with NOT_COORDINATOR: another broker coordinates it."""
        return self.add(*MEMBERSHIP, *COMMITS, error="NOT_COORDINATOR", **given)

    def coordinator_loads(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Answer requests of a group with COORDINATOR_LOAD_IN_PROGRESS."""
        apis = (*MEMBERSHIP, *COMMITS)
        return self.add(*apis, error="COORDINATOR_LOAD_IN_PROGRESS", **given)

    def no_coordinator(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Answer FindCoordinator with COORDINATOR_NOT_AVAILABLE."""
        error = "COORDINATOR_NOT_AVAILABLE"
        return self.add("FindCoordinator", error=error, **given)

    def commit_too_late(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Refuse a commit of offsets: the group has rebalanced meanwhile."""
        return self.add("OffsetCommit", error="ILLEGAL_GENERATION", **given)

    def rebalance_begins(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Tell a member of a classic group to join again."""
        return self.add("Heartbeat", error="REBALANCE_IN_PROGRESS", **given)

    def offsets_unstable(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Answer that offsets of an open transaction are not decided yet."""
        return self.add("OffsetFetch", error="UNSTABLE_OFFSET_COMMIT", **given)

    # Transactions

    def transaction_ends_slowly(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Answer CONCURRENT_TRANSACTIONS: the last transaction is not complete yet."""
        apis = ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn")
        return self.add(*apis, error="CONCURRENT_TRANSACTIONS", **given)

    def producer_fenced(self, **given: Unpack[TriggerOptions]) -> FaultRule:
        """Answer that a newer producer has the transactional id."""
        return self.add(*TRANSACTIONS, error="PRODUCER_FENCED", **given)
