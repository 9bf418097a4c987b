"""`SeveralTransport`: hands request objects to that broker of this process which they are for.

A broker that does not run breaks the connection, as a process that is gone would.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import ClosedError, KafkaError
from embedlog.runtime.pending import Pending
from embedlog.transport import LocalTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from embedlog.cluster.member import Member
    from embedlog.runtime import Runtime
    from wire.schema import R, Request


_RECONNECT_MS = 50


class SeveralTransport(LocalTransport):
    """See `embedlog.transport.Transport`. Many threads may use it."""

    loses_answers = True
    makes_topics = True

    def __init__(
        self,
        members: Mapping[int, Member],
        make_context: Callable[[int, int], Any],
        versions: Mapping[int, tuple[int, int]],
        runtime: Runtime,
        *,
        owner: object,
    ) -> None:
        """`members` by number; the rest is as `LocalTransport` has it."""
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
        """Ask a broker; the pending is done on return unless the broker has to wait."""
        answer: Any
        try:
            context = self._context(type(request), version)
            answer = self._member(node_id).door.handle(context, request)
        except (ClosedError, KafkaError) as error:
            answer = Pending()
            answer.fail(error)
        if self._scheduler.now_ns() >= self._scheduler.next_call_ns:
            self._scheduler.drive()
        if type(answer) is not Pending:
            pending: Pending[R] = Pending()
            pending.complete(answer)
            return pending
        answer.add_callback(self._note_failure)
        return answer

    def _note_failure(self, answer: Pending[Any]) -> None:
        if isinstance(answer.error(), errors.Network):
            self.failure_count += 1

    def _member(self, node_id: int) -> Member:
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
    def _is_up(member: Member) -> bool:
        return member.node is not None and not (member.is_hidden or member.door.is_paused)

    def _disk_error(self, topic: str, partition: int) -> Exception | None:
        """What is wrong with the partition where it is led; None when nothing is known, or it will
        be led elsewhere.
        """
        for member in list(self._members.values()):
            node = member.node
            if node is None:
                continue
            found = node.core.replica_manager.partitions.get((topic, partition))
            if found is not None and found.is_leader:
                if found.remote_replicas is not None and node.core.log_manager.is_offline(
                    found.topic_partition
                ):
                    return None  # another replica takes over
                return node.core.disk_error(topic, partition)
        return None

    def is_ready(self, node_id: int) -> bool:
        """Does the broker run?"""
        if node_id < 0:
            return any(self._is_up(member) for member in list(self._members.values()))
        member = self._members.get(node_id)
        return member is not None and member.node is not None

    def prepare(self, node_id: int) -> int | None:
        """Find out whether the broker runs, as by connecting to it; one that does not may later."""
        if self.is_ready(node_id):
            return None
        self.failure_count += 1
        return _RECONNECT_MS
