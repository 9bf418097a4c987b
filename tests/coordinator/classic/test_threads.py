"""Members in threads of their own, on real locks and clocks: none waits for ever."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import embedlog
from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from tests.apis.conftest import api_key
from tests.apis.groups import GROUP, heartbeat, join, sync
from wire.schemas.leave_group import LeaveGroupRequest, MemberIdentity

MEMBERS = 6
ROUNDS = 4
SESSION_MS = 300
PATIENCE_MS = 20_000


class Member:
    """A client that several times joins, syncs, and leaves or just vanishes."""

    def __init__(self, cluster: Cluster, vanishes: bool) -> None:
        self.cluster = cluster
        self.vanishes = vanishes
        self.assignments: list[bytes] = []
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            for _ in range(ROUNDS):
                self._live()
        except BaseException as failure:
            self.failure = failure
            raise

    def _live(self) -> None:
        member_id, is_assigned = "", False
        while not is_assigned:
            joined = self._ask(join(member_id, session_timeout_ms=SESSION_MS), 9)
            assert joined.error_code in (0, 25, 27, 79), joined
            if joined.error_code:
                member_id = joined.member_id if joined.error_code == 79 else ""
                continue
            member_id = joined.member_id
            assignments = {member.member_id: b"x" for member in joined.members}
            answer = self._ask(sync(member_id, joined.generation_id, assignments), 5)
            assert answer.error_code in (0, 22, 25, 27), answer
            is_assigned = answer.error_code == 0
        self.assignments.append(answer.assignment)
        for _ in range(3):
            self._ask(heartbeat(member_id, joined.generation_id), 4)
        if not self.vanishes:
            self._ask(
                LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=member_id)]), 5
            )

    def _ask(self, request: Any, version: int) -> Any:
        context = RequestContext(api_key(request), version, client_id="member")
        answer = self.cluster.broker().core.handle(context, request)
        if isinstance(answer, Pending):
            assert self.cluster.runtime.scheduler.wait(answer, PATIENCE_MS), request
            return answer.result()
        return answer


@pytest.mark.slow
def test_members_in_threads_all_get_assignments_and_leave_nothing() -> None:
    with embedlog.open(
        group_min_session_timeout_ms=100, group_initial_rebalance_delay_ms=5
    ) as cluster:
        assert topics.ensure_internal_topic(cluster.broker().core, "__consumer_offsets")
        members = [Member(cluster, vanishes=index == 0) for index in range(MEMBERS)]
        for member in members:
            member.thread.join()
        assert [member.failure for member in members] == [None] * MEMBERS
        assert [member.assignments for member in members] == [[b"x"] * ROUNDS] * MEMBERS
        never: Pending[None] = Pending()
        world = cluster.broker().core.group_coordinator.world
        while world.heartbeat_purgatory.delayed + world.join_purgatory.delayed:
            cluster.runtime.scheduler.wait(never, 10)
        assert world.heartbeat_purgatory.watched == world.join_purgatory.watched == 0
        coordinator = cluster.broker().core.group_coordinator
        group = coordinator.runtime.read(
            coordinator.partition_for(GROUP), lambda shard: shard.groups[GROUP]
        ).result()
        assert (group.state_name(), group.members.by_id, group.members.pending) == ("Empty", {}, {})
