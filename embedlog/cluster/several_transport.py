"""`SeveralTransport`: passes request objects to one of several brokers of this process.

A stopped broker breaks the connection, as a dead process does.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import ClosedError, KafkaError
from embedlog.runtime.pending import Pending
from embedlog.transport import RECONNECT_MS, LocalTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from embedlog.cluster.member import ClusterMember
    from embedlog.runtime import Runtime
    from wire.schema import R, Request


class SeveralTransport(LocalTransport):
    """See `embedlog.transport.Transport`. Many threads may use it."""

    loses_answers = True
    makes_topics = True

    def __init__(
        self,
        members: Mapping[int, ClusterMember],
        make_context: Callable[[int, int], Any],
        versions: Mapping[int, tuple[int, int]],
        runtime: Runtime,
        *,
        owner: object,
    ) -> None:
        """`members` are brokers by number. See `LocalTransport` for the other parameters."""
        super().__init__(make_context, versions, runtime, owner)
        self.failure_count = 0
        self.disk_error: Callable[[str, int], Exception | None] = self._disk_error
        self._members = members

    def send(
        self,
        node_id: int,
        request: Request[R],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Pending[R]:
        """Send a request. The pending is done on return unless the broker has to wait."""
        answer: Any
        scheduler = self._scheduler
        due_ns = scheduler.next_call_ns
        if scheduler.now_ns() >= due_ns:
            scheduler.drive()
            due_ns = scheduler.next_call_ns
        try:
            context = self._context(type(request), version)
            answer = self._member(node_id).door.handle(context, request)
        except (ClosedError, KafkaError) as error:
            answer = Pending()
            answer.fail(error)
        if scheduler.next_call_ns < due_ns:
            scheduler.drive()
        if type(answer) is not Pending:
            pending: Pending[R] = Pending()
            pending.complete(answer)
            return pending
        answer.add_callback(self._note_failure)
        return answer

    def _note_failure(self, answer: Pending[Any]) -> None:
        if isinstance(answer.error(), errors.Network):
            self.failure_count += 1

    def _member(self, node_id: int) -> ClusterMember:
        found = self._members.get(node_id)
        if found is not None:
            return found
        if node_id >= 0:
            raise errors.Network(f"there is no broker {node_id}")
        for member in self._members.values():
            if self._is_up(member):
                return member
        raise errors.Network("no broker runs")

    @staticmethod
    def _is_up(member: ClusterMember) -> bool:
        is_open = member.running is not None and not member.door.is_paused
        return is_open and not member.presence.is_hidden

    def _disk_error(self, topic: str, partition: int) -> Exception | None:
        """Return the disk error of the partition's leader; None without one, or if another replica
        will take over.
        """
        for member in list(self._members.values()):
            if member.running is None:
                continue
            core = member.running.core
            found = core.replica_manager.partitions.get((topic, partition))
            state = core.image.partition(topic, partition)
            if found is None and state is not None and state.leader == member.node_id:
                return None if core.log_manager.offline else core.disk_error(topic, partition)
            if found is not None and found.is_leader:
                if found.remote_replicas is not None and core.log_manager.is_offline(
                    found.topic_partition
                ):
                    return None  # another replica takes over
                return core.disk_error(topic, partition)
        return None

    def is_ready(self, node_id: int) -> bool:
        """Return whether the broker runs; for a negative number, whether any broker `_is_up`."""
        if node_id < 0:
            return any(self._is_up(member) for member in list(self._members.values()))
        member = self._members.get(node_id)
        return member is not None and member.running is not None

    def prepare(self, node_id: int) -> int | None:
        """Connect: return None if the broker runs, else milliseconds until the next try."""
        if self.is_ready(node_id):
            return None
        self.failure_count += 1
        return RECONNECT_MS
