"""The other replicas of a partition, as the leader knows them from their fetches.

    log end offset      the fetch offset of a replica: the replica has all records before it
    caught up           at the leader's end, now or within the last replica.lag.time.max.ms
    in sync             the replica is in the ISR that the controller has decided
    maximal ISR         the ISR and the replicas that a proposal adds to it: all of them must have a
                        record before it is committed

If a replica has nothing to fetch, its fetches do not name the partition. But its fetch session
records the time of the last fetch. When the log grows, such a replica counts as caught up until
that time.
"""

from __future__ import annotations

from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from embedlog.replication.leader_and_isr import LeaderAndIsr
    from embedlog.replication.membership import Membership


UNKNOWN = -1
_NEVER_MS = -(1 << 62)


class Replica:
    """One replica on another broker. Times are monotonic."""

    __slots__ = (
        "_session_used_ms",
        "broker_epoch",
        "last_caught_up_ms",
        "last_fetch_ms",
        "leader_end_offset",
        "log_end_offset",
        "log_start_offset",
        "node_id",
    )

    def __init__(self, node_id: int, *, caught_up_ms: int) -> None:
        self.node_id = node_id
        self.log_start_offset = UNKNOWN
        self.log_end_offset = UNKNOWN
        self.leader_end_offset = UNKNOWN
        self.last_fetch_ms = _NEVER_MS
        self.last_caught_up_ms = caught_up_ms
        self.broker_epoch = UNKNOWN
        self._session_used_ms: Callable[[], int | None] | None = None

    def fetched(
        self,
        offset: int,
        *,
        log_start_offset: int,
        end_offset: int,
        broker_epoch: int,
        now_ms: int,
        session_used_ms: Callable[[], int | None],
    ) -> None:
        """Record a fetch from `offset` on, while the leader's log ends at `end_offset`.

        `session_used_ms` returns the time of the last use of this fetch's session, or None after
        the session has dropped the partition.
        """
        if offset >= end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = offset
        self.leader_end_offset = end_offset
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch
        self._session_used_ms = session_used_ms

    def seen_ms(self) -> int:
        """Return the time of the last fetch, whether or not it named this partition."""
        used_ms = None if self._session_used_ms is None else self._session_used_ms()
        return self.last_fetch_ms if used_ms is None else used_ms

    def left_behind(self) -> None:
        """Count the replica as caught up until its last fetch.

        Called when the leader's log grows and the replica was at its end.
        """
        self.last_caught_up_ms = max(self.last_caught_up_ms, self.seen_ms())

    def __repr__(self) -> str:
        return f"Replica({self.node_id}, {self.log_start_offset}..{self.log_end_offset})"


class Proposal(Value):
    """An ISR that the leader proposes to the controller: node ids, alone and with broker epochs."""

    isr: tuple[int, ...]
    with_epochs: Sequence[tuple[int, int]]
    leader_epoch: int
    partition_epoch: int


class RemoteReplicas:
    """The other replicas during one term of a leader.

    The parameter `end_offset` is the end of the leader's own log. All methods except
    `preferred_for`, `find` and `is_outdated` require the partition lock.
    """

    __slots__ = (
        "_membership",
        "_monotonic_ms",
        "_node_id",
        "_replicas",
        "epoch_start_offset",
        "proposal",
        "state",
    )

    def __init__(
        self,
        node_id: int,
        state: LeaderAndIsr,
        membership: Membership,
        monotonic_ms: Callable[[], int],
        *,
        epoch_start_offset: int,
    ) -> None:
        """Begin a term: no offset of the replicas is known, and the ISR counts as caught up."""
        self._node_id = node_id
        self._membership = membership
        self._monotonic_ms = monotonic_ms
        self._replicas: dict[int, Replica] = {}
        self.epoch_start_offset = epoch_start_offset
        """The offset at which the leader's term began. A replica must reach it to join the ISR."""
        self.proposal: Proposal | None = None
        """The proposal that the controller has not answered yet."""
        self.take(state)

    def take(self, state: LeaderAndIsr) -> None:
        """Take over a decision of the controller; it settles any earlier proposal."""
        self.state = state
        self.proposal = None
        now_ms = self._monotonic_ms()
        self._replicas = {
            node_id: self._replicas.get(node_id)
            or Replica(node_id, caught_up_ms=now_ms if node_id in state.isr else _NEVER_MS)
            for node_id in state.replicas
            if node_id != self._node_id
        }

    def find(self, node_id: int) -> Replica | None:
        return self._replicas.get(node_id)

    def all(self) -> Iterable[Replica]:
        return self._replicas.values()

    # In sync

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The in-sync replicas and the replicas that a proposal adds."""
        if self.proposal is not None and len(self.proposal.isr) > len(self.state.isr):
            return self.proposal.isr
        return self.state.isr

    def is_caught_up(self, replica: Replica, end_offset: int) -> bool:
        """Return whether the replica is at the leader's end, or was a short time ago.

        The time is replica.lag.time.max.ms.
        """
        if replica.log_end_offset == end_offset:
            return True
        lag_ms = self._monotonic_ms() - replica.last_caught_up_ms
        lag_max: int = self._membership.config.replica_lag_time_max_ms
        return lag_ms <= lag_max

    def is_eligible(self, replica: Replica) -> bool:
        """Return whether the directory is online, and the broker is live and not restarted."""
        node_id, membership = replica.node_id, self._membership
        if node_id in self.state.offline_replicas or not membership.is_eligible(node_id):
            return False
        return replica.broker_epoch in (UNKNOWN, membership.epoch_of(node_id))

    def is_outdated(self, node_id: int, broker_epoch: int) -> bool:
        """Return whether a fetch with `broker_epoch` is from before a restart of the broker."""
        return broker_epoch != UNKNOWN and broker_epoch < self._membership.epoch_of(node_id)

    def propose_with(self, replica: Replica, high_watermark: int) -> Proposal | None:
        """Return a proposal to add the replica to the ISR, or None if it does not qualify."""
        if (
            self.proposal is not None
            or replica.node_id in self.state.isr
            or replica.log_end_offset < max(high_watermark, self.epoch_start_offset)
            or not self.is_eligible(replica)
        ):
            return None
        return self._propose(tuple(sorted((*self.state.isr, replica.node_id))))

    def propose_seen(self, since_ms: int, high_watermark: int) -> Proposal | None:
        """Propose to add one replica whose broker has fetched since `since_ms`; see `propose_with`.

        The fetches need not have named this partition.
        """
        for replica in self._replicas.values():
            if replica.node_id not in self.state.isr and replica.seen_ms() >= since_ms:
                proposal = self.propose_with(replica, high_watermark)
                if proposal is not None:
                    return proposal
        return None

    @property
    def is_complete(self) -> bool:
        return len(self.state.isr) > len(self._replicas)

    def propose_without_lagging(self, end_offset: int) -> Proposal | None:
        """Return a proposal of the ISR without lagging replicas, or None if no replica lags."""
        if self.proposal is not None:
            return None
        state = self.state
        lagging = {
            replica.node_id
            for replica in self._replicas.values()
            if replica.node_id in state.isr and not self.is_caught_up(replica, end_offset)
        }
        if not lagging:
            return None
        return self._propose(tuple(node_id for node_id in state.isr if node_id not in lagging))

    def _propose(self, isr: tuple[int, ...]) -> Proposal:
        epochs = {replica.node_id: replica.broker_epoch for replica in self._replicas.values()}
        epochs[self._node_id] = self._membership.broker_epoch
        with_epochs = [(node_id, epochs.get(node_id, UNKNOWN)) for node_id in isr]
        state = self.state
        self.proposal = Proposal(isr, with_epochs, state.leader_epoch, state.partition_epoch)
        return self.proposal

    # Offsets

    def appended(self, first_offset: int) -> None:
        """Record that the leader has appended records at `first_offset`."""
        for replica in self._replicas.values():
            if replica.log_end_offset == first_offset:
                replica.left_behind()

    def committed_offset(self, own_offset: int, end_offset: int) -> int:
        """Return the end of the committed records, at most `own_offset`.

        It is 0 if there are fewer in-sync replicas than min.insync.replicas. The records must be on
        all replicas of the maximal ISR, and on caught-up replicas that may join the ISR: these can
        join only if the high watermark does not pass their end first.
        """
        state = self.state
        if len(state.isr) < state.min_isr:
            return 0
        isr = self.maximal_isr
        offset = own_offset
        for replica in self._replicas.values():
            if replica.log_end_offset < offset and (
                replica.node_id in isr
                or (self.is_caught_up(replica, end_offset) and self.is_eligible(replica))
            ):
                offset = replica.log_end_offset
        return offset

    def preferred_for(self, rack_id: str, offset: int) -> int:
        """Return the replica for a consumer in the rack, or -1 for the leader (KIP-392).

        It is -1 if the leader is in the rack, or no in-sync replica of the rack has the offset.
        If several have it, choose the highest end; if ends are equal, the latest to be caught up.
        """
        membership = self._membership
        if membership.rack_of(self._node_id) == rack_id:
            return UNKNOWN
        near = [
            (replica.log_end_offset, replica.last_caught_up_ms, replica.node_id)
            for replica in list(self._replicas.values())
            if replica.node_id in self.state.isr
            and UNKNOWN < replica.log_start_offset <= offset <= replica.log_end_offset
            and membership.rack_of(replica.node_id) == rack_id
            and membership.is_eligible(replica.node_id)
        ]
        return max(near)[2] if near else UNKNOWN

    def low_watermark(self, log_start_offset: int) -> int:
        """Return the lowest log start offset of the leader (the argument) and all live replicas.

        It is -1 until every live replica has fetched.
        """
        starts = [
            replica.log_start_offset
            for replica in self._replicas.values()
            if self._membership.is_eligible(replica.node_id)
            and replica.node_id not in self.state.offline_replicas
        ]
        return min((log_start_offset, *starts))
