"""`Positions`: looks up missing positions and validates doubtful ones.

    state              look-up
    INITIALIZING       the group's committed offset; if there is none, auto.offset.reset decides
    AWAIT_RESET        ListOffsets with the timestamp of auto.offset.reset or of a seek
    AWAIT_VALIDATION   OffsetForLeaderEpoch: does the new leader's log have the records that were
                       read? (KIP-320)

Several look-ups may be open. If a position has changed meanwhile, the answer for it is dropped.
"""

from __future__ import annotations

from embedlog.client.backoff import sooner
from embedlog.client.consumer.offset_lookup import OffsetLookup
from embedlog.client.consumer.subscription_state import LATEST_TIMESTAMP, FetchState
from embedlog.client.errors import NoOffsetForPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.epoch_lookup import EpochLookup
    from embedlog.client.consumer.group.committed_offsets import CommittedLookup
    from embedlog.client.consumer.group.coordinator import ConsumerCoordinator
    from embedlog.client.consumer.leader_lookup import LeaderLookup
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.subscription_state import PartitionState, ResetPolicy
    from embedlog.common import TopicPartition


class Positions:
    """The open look-ups of one consumer."""

    def __init__(
        self, parts: ConsumerParts, policy: ResetPolicy, coordinator: ConsumerCoordinator | None
    ) -> None:
        self._parts = parts
        self._policy = policy
        self._states = parts.subscription
        self._metadata = parts.metadata
        self._clock = parts.transport.runtime.clock
        self._coordinator = coordinator
        self._asked: dict[TopicPartition, tuple[PartitionState, int]] = {}
        """State and generation of each partition with an open look-up."""
        self._resets: list[OffsetLookup] = []
        self._committed: list[CommittedLookup] = []
        self._epochs: list[EpochLookup] = []
        self._seen_changes = 0

    def advance(self, now_ms: int) -> int | None:
        """Begin look-ups and take answers; return milliseconds to the next useful pass, if known.

        Raises:
            NoOffsetForPartition: no offset is committed, and auto.offset.reset is none.
            LogTruncation: records that were read are gone, and auto.offset.reset is none.
            KafkaError: a look-up failed with an error that a retry cannot cure.
        """
        if self._metadata.change_count != self._seen_changes:
            self._seen_changes = self._metadata.change_count
            self._check_leaders()
        if not self._asked and not self._is_something_open():
            return None
        delay = self._ask(now_ms)
        under_way: list[LeaderLookup] = [*self._resets, *self._epochs]
        for lookup in under_way:
            delay = sooner(delay, lookup.advance(now_ms))
        if self._take_answers():
            # An answer may require one more look-up: a reset if no offset is committed, or a reset
            # to the end if no record has the timestamp.
            return self.advance(now_ms) if self._is_something_open() else delay
        return delay

    def _is_something_open(self) -> bool:
        # `any` with a generator would cost one more call per partition in every poll.
        for state in self._states.partitions.values():  # noqa: SIM110
            if state.state != FetchState.FETCHING:
                return True
        return False

    # Asking

    def _ask(self, now_ms: int) -> int | None:
        """Begin the missing look-ups.

        Returns the milliseconds until the look-up of committed offsets can continue, if known.
        """
        self._drop_stale()
        timestamps: dict[TopicPartition, int] = {}
        without: list[TopicPartition] = []
        unproven: list[PartitionState] = []
        for key, state in self._states.partitions.items():
            if key in self._asked or state.state == FetchState.FETCHING:
                continue
            if state.state == FetchState.INITIALIZING:
                if self._coordinator is not None:
                    without.append(key)
                    continue
                self._choose(state)
            if state.state == FetchState.AWAIT_RESET:
                assert state.reset_timestamp is not None, key
                timestamps[key] = state.reset_timestamp
            else:
                unproven.append(state)
        self._note([*timestamps, *without, *(each.topic_partition for each in unproven)])
        if timestamps:
            parts = self._parts
            self._resets.append(
                OffsetLookup(
                    parts.transport, self._metadata, parts.settings, timestamps, parts.arrived
                )
            )
        if without:
            assert self._coordinator is not None, self
            self._committed.append(self._coordinator.fetch_committed(without))
        if unproven:
            from embedlog.client.consumer.epoch_lookup import EpochLookup

            epochs = {state.topic_partition: state.offset_epoch for state in unproven}
            self._epochs.append(EpochLookup(self._parts, epochs))
        return self._coordinator.keep(now_ms) if without and self._coordinator else None

    def _choose(self, state: PartitionState) -> None:
        chosen = self._policy.timestamp(self._clock.wall_ms())
        if chosen is None:
            raise NoOffsetForPartition(
                f"{state.topic_partition} has no position and auto.offset.reset=none: seek to one"
            )
        state.reset_to(chosen)

    def _note(self, keys: list[TopicPartition]) -> None:
        states = self._states.partitions
        for key in keys:
            self._asked[key] = states[key], states[key].generation

    def _is_current(self, key: TopicPartition) -> bool:
        state, generation = self._asked[key]
        return self._states.partitions.get(key) is state and state.generation == generation

    def _drop_stale(self) -> None:
        """Forget look-ups of partitions that were revoked or repositioned."""
        stale = [key for key in self._asked if not self._is_current(key)]
        for key in stale:
            del self._asked[key]
        if stale and not self._asked:
            self._resets, self._committed, self._epochs = [], [], []

    # Answers

    def _take_answers(self) -> bool:
        """Use the results of the finished look-ups; True if one has finished."""
        resets = [each for each in self._resets if each.is_done]
        committed = [each for each in self._committed if each.is_done]
        epochs = [each for each in self._epochs if each.is_done]
        self._resets = [each for each in self._resets if not each.is_done]
        self._committed = [each for each in self._committed if not each.is_done]
        self._epochs = [each for each in self._epochs if not each.is_done]
        for reset in resets:
            self._take_reset(reset)
        for stored in committed:
            self._take_committed(stored)
        for proof in epochs:
            self._take_epochs(proof)
        return bool(resets or committed or epochs)

    def _answered(self, key: TopicPartition) -> PartitionState | None:
        """Return a partition's state; None if a revocation or a seek made the look-up stale."""
        if key not in self._asked or not self._is_current(key):
            return None
        return self._asked.pop(key)[0]

    def _take_reset(self, lookup: OffsetLookup) -> None:
        for key, found in lookup.found.items():
            state = self._answered(key)
            if state is None:
                continue
            if found is None:
                # auto.offset.reset=by_duration found no record that new: use the end, like Kafka.
                state.reset_to(LATEST_TIMESTAMP)
            else:
                state.seek(found.offset, found.leader_epoch)
                self._proven(state)
        for key in lookup.failed:
            self._answered(key)
        for error in lookup.failed.values():
            raise error

    def _take_committed(self, lookup: CommittedLookup) -> None:
        current = {key: self._answered(key) for key in lookup.partitions}
        if lookup.error is not None:
            raise lookup.error
        for key, state in current.items():
            found = lookup.found.get(key)
            if state is None:
                continue
            if found is None:
                self._choose(state)
            else:
                state.seek_unproven(found.offset, found.leader_epoch)

    def _take_epochs(self, lookup: EpochLookup) -> None:
        from embedlog.client.consumer.epoch_lookup import raise_truncated

        cut: dict[TopicPartition, tuple[PartitionState, int | None]] = {}
        for key in lookup.partitions:
            state = self._answered(key)
            if state is None or key in lookup.failed:
                continue
            end = lookup.end_offsets.get(key)
            if end is None or end.offset >= state.offset:
                state.transition_to(FetchState.FETCHING)
                self._proven(state)
            elif self._policy.name == "none":
                cut[key] = state, None if end.offset < 0 else end.offset
            elif end.offset < 0:
                self._choose(state)
            else:
                # From `end.offset` on, the leader's records differ from the records that were read.
                state.seek(end.offset, end.leader_epoch)
                self._proven(state)
        for error in lookup.failed.values():
            raise error
        if cut:
            raise_truncated(cut)

    # Leaders

    def _check_leaders(self) -> None:
        """Require validation of a position if its partition has a new leader or leader epoch."""
        for key, state in self._states.partitions.items():
            if not state.has_position:
                continue
            leader = self._metadata.leader(*key)
            if leader is None:
                continue
            now = leader.leader, leader.leader_epoch
            before, state.leader = state.leader, now
            if before is None or before == now:
                continue
            state.read_from_leader()
            if state.offset_epoch < 0:
                continue
            state.generation += 1
            state.transition_to(FetchState.AWAIT_VALIDATION)

    def _proven(self, state: PartitionState) -> None:
        leader = self._metadata.leader(*state.topic_partition)
        state.leader = None if leader is None else (leader.leader, leader.leader_epoch)
