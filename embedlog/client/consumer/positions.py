"""`Positions`: looks up missing positions and validates doubtful ones.

    state              look-up
    INITIALIZING       the group's committed offset; if there is none, auto.offset.reset decides
    AWAIT_RESET        ListOffsets with the timestamp of auto.offset.reset or of a seek
    AWAIT_VALIDATION   OffsetForLeaderEpoch: does the new leader's log have the records that were
                       read? (KIP-320)

Several look-ups may be open, and each may ask about several partitions. A partition takes its
answer as soon as it is there, and only from the look-up that asked for its present state: if the
position has changed meanwhile, the answer is dropped.
"""

from __future__ import annotations

from embedlog.client.backoff import sooner
from embedlog.client.consumer.offset_lookup import OffsetLookup
from embedlog.client.consumer.subscription_state import LATEST_TIMESTAMP, FetchState
from embedlog.client.errors import NoOffsetForPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.client.consumer.epoch_lookup import EpochLookup
    from embedlog.client.consumer.group.committed_offsets import CommittedLookup
    from embedlog.client.consumer.group.coordinator import ConsumerCoordinator
    from embedlog.client.consumer.leader_lookup import LeaderLookup
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.subscription_state import PartitionState, ResetPolicy
    from embedlog.common import TopicPartition

    Lookup = LeaderLookup | CommittedLookup
    Take = Callable[[list[TopicPartition]], None]


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
        self._asked: dict[TopicPartition, tuple[Lookup, PartitionState, int]] = {}
        """By partition, the look-up that asks about it, and its state and generation then."""
        self._open: dict[Lookup, Take] = {}
        """The look-ups without all answers, with the function that takes partitions' answers."""
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
        for lookup in self._open:
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
        epochs: dict[TopicPartition, int] = {}
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
                epochs[key] = state.offset_epoch
        parts = self._parts
        if timestamps:
            found = OffsetLookup(
                parts.transport, self._metadata, parts.settings, timestamps, parts.arrived
            )
            self._begin(found, timestamps, lambda keys: self._take_reset(found, keys))
        if epochs:
            from embedlog.client.consumer.epoch_lookup import EpochLookup

            proof = EpochLookup(parts, epochs)
            self._begin(proof, epochs, lambda keys: self._take_epochs(proof, keys))
        if not without:
            return None
        assert self._coordinator is not None, self
        stored = self._coordinator.fetch_committed(without)
        self._begin(stored, without, lambda keys: self._take_committed(stored, keys))
        return self._coordinator.keep(now_ms)

    def _begin(self, lookup: Lookup, keys: Iterable[TopicPartition], take: Take) -> None:
        self._open[lookup] = take
        states = self._states.partitions
        for key in keys:
            self._asked[key] = lookup, states[key], states[key].generation

    def _choose(self, state: PartitionState) -> None:
        chosen = self._policy.timestamp(self._clock.wall_ms())
        if chosen is None:
            raise NoOffsetForPartition(
                f"{state.topic_partition} has no position and auto.offset.reset=none: seek to one"
            )
        state.reset_to(chosen)

    def _is_current(self, key: TopicPartition) -> bool:
        _, state, generation = self._asked[key]
        return self._states.partitions.get(key) is state and state.generation == generation

    def _drop_stale(self) -> None:
        """Forget the questions about partitions that were revoked or repositioned."""
        for key in [key for key in self._asked if not self._is_current(key)]:
            # The look-up stays open, even if it is done now: other partitions' answers may wait.
            lookup, _, _ = self._asked.pop(key)
            lookup.forget(key)

    # Answers

    def _take_answers(self) -> bool:
        """Use the answers that have arrived; True if there is one."""
        is_news = False
        for lookup, take in list(self._open.items()):
            keys = lookup.take_answered()
            if lookup.is_done:
                del self._open[lookup]
            if keys:
                is_news = True
                take(keys)
        return is_news

    def _answered(self, lookup: Lookup, key: TopicPartition) -> PartitionState | None:
        """Return a partition's state; None if `lookup` is not about its present state.

        Requires: stale questions are dropped.
        """
        if key not in self._asked or self._asked[key][0] is not lookup:
            return None
        return self._asked.pop(key)[1]

    def _take_reset(self, lookup: OffsetLookup, keys: list[TopicPartition]) -> None:
        refused = []
        for key in keys:
            state = self._answered(lookup, key)
            if state is None:
                continue
            if key in lookup.failed:
                refused.append(key)
                continue
            found = lookup.found[key]
            if found is None:
                # auto.offset.reset=by_duration found no record that new: use the end, like Kafka.
                state.reset_to(LATEST_TIMESTAMP)
            else:
                state.seek(found.offset, found.leader_epoch)
                self._confirmed(state, lookup)
        _raise_first(lookup, refused)

    def _take_committed(self, lookup: CommittedLookup, keys: list[TopicPartition]) -> None:
        states = {key: self._answered(lookup, key) for key in keys}
        current = {key: state for key, state in states.items() if state is not None}
        if current and lookup.error is not None:
            raise lookup.error
        without = []
        for key, state in current.items():
            found = lookup.found.get(key)
            if found is None:
                without.append(state)
            else:
                state.seek_unproven(found.offset, found.leader_epoch)
        for state in without:
            self._choose(state)

    def _take_epochs(self, lookup: EpochLookup, keys: list[TopicPartition]) -> None:
        from embedlog.client.consumer.epoch_lookup import raise_truncated

        cut: dict[TopicPartition, tuple[PartitionState, int | None]] = {}
        refused = []
        for key in keys:
            state = self._answered(lookup, key)
            if state is None:
                continue
            if key in lookup.failed:
                refused.append(key)
                continue
            end = lookup.end_offsets.get(key)
            if end is None or end.offset >= state.offset:
                state.transition_to(FetchState.FETCHING)
                self._confirmed(state, lookup)
            elif self._policy.name == "none":
                cut[key] = state, None if end.offset < 0 else end.offset
            elif end.offset < 0:
                self._choose(state)
            else:
                # From `end.offset` on, the leader's records differ from the records that were read.
                state.seek(end.offset, end.leader_epoch)
                self._confirmed(state, lookup)
        _raise_first(lookup, refused)
        if cut:
            raise_truncated(cut)

    # Leaders

    def _check_leaders(self) -> None:
        for state in self._states.partitions.values():
            if state.has_position:
                self._check_leader(state)

    def _check_leader(self, state: PartitionState) -> None:
        """Require validation of a position if its partition has a new leader or leader epoch."""
        leader = self._metadata.leader(*state.topic_partition)
        if leader is None:
            return
        now = leader.leader, leader.leader_epoch
        before, state.leader = state.leader, now
        if before is None or before == now:
            return
        state.read_from_leader()
        if state.offset_epoch < 0:
            return
        state.generation += 1
        state.transition_to(FetchState.AWAIT_VALIDATION)

    def _confirmed(self, state: PartitionState, lookup: LeaderLookup) -> None:
        """Note the leader that confirmed the position; a newer leader must confirm it again."""
        state.leader = lookup.leaders[state.topic_partition]
        self._check_leader(state)


def _raise_first(lookup: LeaderLookup, refused: list[TopicPartition]) -> None:
    if refused:
        raise lookup.failed[refused[0]]
