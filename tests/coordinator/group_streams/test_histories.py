"""Random histories of a streams group: a task is never active twice, and in the end all tasks run.

Members come, go, fall silent and lose answers; some share a process, some are static; sources grow;
settings change; appends fail; the shard restarts, with its log compacted or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedlog.coordinator.group.streams.streams_group import StreamsGroup
from embedlog.errors import KafkaError, error_for
from tests.coordinator.consumer.world import GROUP
from tests.coordinator.group_streams.world import SESSION_MS, Streamer, StreamsWorld, topology
from wire.error_codes import ErrorCode

NAMES = ("m1", "m2", "m3", "m4")
GONE = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
REFUSALS = GONE | {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNRELEASED_INSTANCE_ID}


class History:
    """The present members, and a check after each event."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.world = StreamsWorld(
            group_streams_assignment_interval_ms=draw(st.sampled_from((0, 0, 1000))),
            group_streams_initial_rebalance_delay_ms=draw(st.sampled_from((0, 0, 3000))),
        )
        self.topology = topology("t", "u")
        self.members: dict[str, Streamer] = {}
        for name in ("t", "u"):
            self.grow(name, draw(st.integers(1, 4)))

    def grow(self, name: str, count: int) -> None:
        self.world.make_topic(name, count)
        self.world.make_topic(f"{name}-changelog", count)

    def run(self, step_count: int) -> None:
        steps = (
            self.join,
            self.join,
            self.beat,
            self.beat,
            self.beat,
            self.beat,
            self.leave,
            self.lose,
            self.silence,
        )
        steps += (self.fail, self.restart, self.topics, self.configure, self.wait)
        self.join()
        self.join()
        for _ in range(step_count):
            self.draw(st.sampled_from(steps))()
            self.check()
        self.end()

    # Events

    def join(self) -> None:
        name = self.draw(st.sampled_from(NAMES))
        if name not in self.members:
            fields: dict[str, Any] = {"process_id": self.draw(st.sampled_from("pqr"))}
            if self.draw(st.booleans()):
                fields["instance_id"] = f"i-{name}"
            self.attempt(name, lambda: self.add(name, fields))

    def add(self, name: str, fields: dict[str, Any]) -> None:
        self.members[name] = Streamer(self.world, name, self.topology, **fields)

    def beat(self) -> None:
        for name, member in self.some():
            self.attempt(name, member.beat)

    def leave(self) -> None:
        for name, member in self.some():
            self.attempt(name, member.leave)
            self.members.pop(name, None)

    def lose(self) -> None:
        """The answer to a heartbeat is lost; the member gives up its tasks, and joins again.

        As in Kafka, an answer to the member's next heartbeat would not repeat the tasks.
        """
        for name, member in self.some():
            if "instance_id" not in member.fields:
                self.attempt(
                    name, lambda m=member: self.world.beat(m.member_id, m.epoch, **m.report())
                )
                if name in self.members:
                    member.active, member.standby, member.closing = set(), set(), set()
                    self.attempt(name, lambda n=name, m=member: self.add(n, m.fields))

    def silence(self) -> None:
        """Some member falls silent until its session ends; the others beat meanwhile."""
        silent = {name for name, _ in self.some()}
        for _ in range(4):
            self.world.elapse(SESSION_MS // 3)
            for name, member in list(self.members.items()):
                if name not in silent:
                    self.attempt(name, member.beat)
        for name in silent:
            self.members.pop(name, None)

    def fail(self) -> None:
        self.world.refusal = error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.beat()
        self.world.refusal = None

    def restart(self) -> None:
        self.world = self.world.restarted(compacted=self.draw(st.booleans()))
        for member in self.members.values():
            member.world = self.world

    def topics(self) -> None:
        name = self.draw(st.sampled_from("tu"))
        count = len(self.world.image.topics_by_name[name].partitions)
        self.grow(name, min(count + 1, 5))

    def configure(self) -> None:
        count = self.draw(st.integers(0, 2))
        self.world.configure(GROUP, streams_num_standby_replicas=str(count))

    def wait(self) -> None:
        self.world.elapse(self.draw(st.sampled_from((500, 1500, 5000))))

    def some(self) -> list[tuple[str, Streamer]]:
        if not self.members:
            return []
        known = st.sampled_from(sorted(self.members))
        names = self.draw(st.lists(known, min_size=1, max_size=3, unique=True))
        return [(name, self.members[name]) for name in names]

    def attempt(self, name: str, event: Callable[[], Any]) -> None:
        try:
            event()
        except KafkaError as error:
            assert error.code in REFUSALS, error
            if error.code in GONE:
                # The member gives up its tasks, and is free to join again.
                self.members.pop(name, None)

    # Checks

    def check(self) -> None:
        """Look at the members that the group has: others have missed a time limit."""
        group = self.world.shard.groups.get(GROUP)
        known = group.members if isinstance(group, StreamsGroup) else {}
        members = [member for name, member in self.members.items() if name in known]
        active = Counter(task for each in members for task in each.active | each.closing)
        assert not active or max(active.values()) == 1, active
        per_process = Counter(
            (member.fields["process_id"], task)
            for member in members
            for task in [*member.active, *member.standby]
        )
        assert not per_process or max(per_process.values()) == 1, per_process

    def end(self) -> None:
        """Let every member beat until nothing changes: then each task runs once."""
        for _ in range(12):
            self.world.elapse(4000)
            for name, member in list(self.members.items()):
                self.attempt(name, member.beat)
            self.check()
        self.world.elapse(SESSION_MS // 2)
        if not self.members:
            return
        for _ in range(12):
            self.world.elapse(4000)
            for name, member in list(self.members.items()):
                self.attempt(name, member.beat)
        if not self.members:
            return
        counts = {n: len(self.world.image.topics_by_name[n].partitions) for n in ("t", "u")}
        wanted = {("0", n) for n in range(counts["t"])} | {("1", n) for n in range(counts["u"])}
        assert {task for member in self.members.values() for task in member.active} == wanted
        assert self.world.streams_group().state_name() == "Stable"


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_a_task_is_never_active_twice_and_in_the_end_all_run(data: st.DataObject) -> None:
    History(data.draw).run(data.draw(st.integers(5, 30)))
