"""`Fetcher`: fetches ahead of the application.

Each broker has at most one open fetch request. Answers are buffered until the application polls
them; over a network the next fetch is open meanwhile.

A broker gets no fetch while one of its partitions has two buffered answers, or an answer that
reaches the end of the log. A fetch without this partition might wait for new records of the
broker's other partitions. Until that fetch ends, the partition could not be fetched, although the
application may have polled the partition's buffered records long before.
"""

from __future__ import annotations

from embedlog.client.consumer.fetch_answers import FetchAnswers
from embedlog.client.consumer.fetch_session import FetchSession, SentFetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.consumer.fetch_buffer import FetchBuffer
    from embedlog.client.consumer.fetch_session import Wanted
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.subscription_state import PartitionState, ResetPolicy
    from embedlog.client.metadata import PartitionInfo
    from embedlog.common import TopicPartition
    from embedlog.runtime.pending import Pending


class Fetcher:
    """Sends the fetches of one consumer. Used by one thread at a time."""

    def __init__(self, parts: ConsumerParts, policy: ResetPolicy, buffer: FetchBuffer) -> None:
        settings = parts.settings
        self._transport = parts.transport
        self._metadata = parts.metadata
        self._subscription = parts.subscription
        self._arrived = parts.arrived
        self._counts = parts.counts
        self.buffer = buffer
        self._answers = FetchAnswers(parts, policy, buffer)
        self._partition_size_max: int = settings["max.partition.fetch.bytes"]
        self._limits = {
            "max_wait_ms": settings["fetch.max.wait.ms"],
            "min_bytes": settings["fetch.min.bytes"],
            "max_bytes": settings["fetch.max.bytes"],
            "isolation_level": int(buffer.is_committed_only),
            "rack_id": settings["client.rack"],
        }
        self._sessions: dict[int, FetchSession] = {}
        self._sent: dict[int, SentFetch] = {}

    def advance(self, now_ms: int) -> int | None:
        """Take answers and send fetches; return milliseconds to the next useful pass, if known."""
        if self._sent:
            self.take_arrived(now_ms)
        self._send(now_ms)
        if self._sent:
            self.take_arrived(now_ms)  # in process the answers arrive at once
        return self._answers.delay(now_ms)

    def take_arrived(self, now_ms: int) -> bool:
        """Take the answers that have arrived; True if there was one."""
        found = False
        for node_id, sent in list(self._sent.items()):
            if sent.pending.done():
                found = True
                del self._sent[node_id]
                self._answers.take(sent, now_ms)
        return found

    def close(self) -> list[Pending[Any]]:
        """End the sessions. Return the pending answers that the caller may wait for.

        Answers of brokers with an open fetch are left out: these brokers answer the fetch first,
        which may take fetch.max.wait.ms.
        """
        closing = []
        for node_id, session in self._sessions.items():
            request = session.closing_request()
            if request is not None:
                pending = self._transport.send(node_id, request)
                if node_id not in self._sent:
                    closing.append(pending)
        self._sessions.clear()
        self.buffer.clear()
        return closing

    def _send(self, now_ms: int) -> None:
        wanted: dict[int, dict[TopicPartition, Wanted]] = {}
        busy = self._nodes_with_buffered(now_ms) if self.buffer.first else self._sent
        for key, state in self._subscription.partitions.items():
            if not state.is_fetchable:
                continue
            buffered = self.buffer.first.get(key)
            if buffered is not None and not self.buffer.may_fetch_after(buffered):
                continue
            leader = self._metadata.leader(*key)
            if leader is None:
                self._metadata.request_update()
                continue
            node_id = leader.leader
            if state.read_replica is not None:
                node_id = self._node_for(state, leader, now_ms)
            if node_id in busy or state.retry_at_ms > now_ms:
                continue
            topic_id = self._metadata.topics[key[0]].topic_id
            wanted.setdefault(node_id, {})[key] = (
                topic_id,
                leader.leader_epoch,
                state.offset if buffered is None else buffered.batches.end_offset,
                self._partition_size_max,
            )
        for node_id, partitions in wanted.items():
            self._fetch(node_id, partitions)

    def _node_for(self, state: PartitionState, leader: PartitionInfo, now_ms: int) -> int:
        """Return the follower that the leader named if it is usable, else the leader (KIP-392)."""
        if state.read_replica is None:
            return leader.leader
        node_id, until_ms = state.read_replica
        if now_ms <= until_ms:
            is_there = node_id in self._metadata.cluster.by_id and node_id in leader.replicas
            if is_there and node_id not in leader.offline_replicas:
                return node_id
            self._metadata.request_update()
        state.read_from_leader()
        return leader.leader

    def _fetch(self, node_id: int, wanted: dict[TopicPartition, Wanted]) -> None:
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = FetchSession()
        if len(wanted) == 1 and self._transport.in_process:
            request = session.full_request(wanted, **self._limits)
        else:
            request = session.request(wanted, **self._limits)
        states = self._subscription.partitions
        partitions: dict[tuple[str, int], tuple[PartitionState, int, int]] = {}
        for key, (_, _, offset, _) in wanted.items():
            state = states[key]
            partitions[key] = state, state.generation, offset
        self._counts["fetch-total"] += 1
        pending = self._transport.send(node_id, request)
        self._sent[node_id] = SentFetch(session, partitions, pending)
        if not pending.done():
            pending.add_callback(self._arrived)

    def _nodes_with_buffered(self, now_ms: int) -> set[int]:
        """Return the brokers that must get no fetch now. Also drops stale answers."""
        busy = set(self._sent)
        for key, fetch in list(self.buffer.first.items()):
            if self.buffer.is_stale(fetch):
                self.buffer.drop(key)
                continue
            state = fetch.state
            if state.is_paused or state.is_revoking or self.buffer.may_fetch_after(fetch):
                continue
            leader = self._metadata.leader(*key)
            if leader is not None:
                busy.add(self._node_for(state, leader, now_ms))
        return busy
