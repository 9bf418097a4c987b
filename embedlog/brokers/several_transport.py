"""`SeveralTransport`: hands request objects to that broker of this process which they are for.

A broker that does not run breaks the connection, as a process that is gone would.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import ClosedError, KafkaError
from embedlog.pending import Pending
from embedlog.runtime.forks import stays_in_parent
from embedlog.transport import NoWrites, newest_common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from embedlog.brokers.member import Member
    from embedlog.runtime import Runtime
    from wire.schema import Message, R, Request


_RECONNECT_MS = 50


class SeveralTransport:
    """See `embedlog.transport.Transport`. Many threads may use it."""

    concurrent = True
    in_process = True
    is_driven = True
    loses_answers = True
    makes_topics = True
    writes = NoWrites()

    def __init__(
        self,
        members: Mapping[int, Member],
        make_context: Callable[[int, int], Any],
        versions: Mapping[int, tuple[int, int]],
        runtime: Runtime,
        *,
        owner: object,
    ) -> None:
        """`members` by number; `make_context(api_key, version)` is what a broker gets beside the
        request; `versions` is what they serve. `owner` is kept alive: the cluster, for clients that
        outlive its name.
        """
        self.runtime = runtime
        self.failure_count = 0
        self.before_end: Callable[[], None] | None = None
        self.disk_error: Callable[[str, int], Exception | None] = self._disk_error
        self._members = members
        self._make_context = make_context
        self._versions = versions
        self._owner = owner
        self._scheduler = runtime.scheduler
        self._is_closed = False
        stays_in_parent(self)

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

    def versions(self, node_id: int) -> Mapping[int, tuple[int, int]]:
        return self._versions

    def _disk_error(self, topic: str, partition: int) -> Exception | None:
        """What is wrong with the partition where it is led; None when nothing is known."""
        for member in list(self._members.values()):
            node = member.node
            if node is None:
                continue
            found = node.core.replica_manager.partitions.get((topic, partition))
            if found is not None and found.is_leader:
                return node.core.disk_error(topic, partition)
        return None

    def set_nodes(
        self, nodes: Mapping[int, tuple[str, int]], cluster_id: str | None = None
    ) -> None:
        """Nothing to know: every broker is in this process."""

    def set_coordinator(self, node_id: int, host: str, port: int) -> int:
        """The node itself: no request stands in another's way."""
        return node_id

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

    def bootstrap_again(self) -> None:
        """Nothing to forget."""

    def drop_requests(self, reason: str) -> None:
        """Nothing is on a wire."""

    def wait(self, pending: Pending[Any], timeout_ms: int | None) -> bool:
        return self._scheduler.wait(pending, timeout_ms)

    def poll(self) -> None:
        self._scheduler.run_due(self.runtime.clock.monotonic_ms())

    def wake(self) -> None:
        """Nothing to do: a waiting thread holds a pending that somebody completes."""

    def end(self) -> None:
        """The cluster is about to be closed: let the client send what it holds, then close."""
        if self.before_end is not None and not self._is_closed:
            self.before_end()
        self.close()

    def close(self) -> None:
        self._is_closed = True

    def _context(self, kind: type[Message], version: int | None) -> Any:
        if self._is_closed:
            raise ClosedError("the client was closed")
        known = kind.__declaration__
        assert known is not None, kind
        assert known.api is not None, kind
        chosen = newest_common(kind, self._versions.get(known.api)) if version is None else version
        return self._make_context(known.api, chosen)
