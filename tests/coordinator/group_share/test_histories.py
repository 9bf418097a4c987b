"""Random histories of a share group: in the end every partition with state has a member.

Members come, go, fall silent, change their subscriptions, lose answers; topics come, grow and go;
offsets are set and deleted; appends and share coordinators fail; answers come late or never; the
shard restarts, with its log compacted or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedlog.coordinator.group.share.share_group import ShareGroup
from embedlog.errors import KafkaError, error_for
from tests.coordinator.group_share.world import GROUP, SESSION_MS, Sharer, ShareWorld
from wire.error_codes import ErrorCode

TOPICS = ("t", "u", "v")
NAMES = ("m1", "m2", "m3", "m4")
SUBSCRIPTIONS = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=3, unique=True)
GONE = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
REFUSALS = GONE | {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NON_EMPTY_GROUP}


class History:
    """The present members, and a check after each event."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.world = ShareWorld(
            group_share_assignment_interval_ms=draw(st.sampled_from((0, 0, 1000)))
        )
        self.members: dict[str, Sharer] = {}
        self.epoch = 0
        for topic in TOPICS:
            self.world.make_topic(topic, draw(st.integers(1, 4)))

    def run(self, step_count: int) -> None:
        steps = (self.join, self.beat, self.beat, self.beat, self.leave, self.change, self.lose)
        steps += (self.fail, self.restart, self.topics, self.silence, self.state, self.offsets)
        for _ in range(step_count):
            self.draw(st.sampled_from(steps))()
            self.check()
        self.end()

    # Events

    def join(self) -> None:
        name = self.draw(st.sampled_from(NAMES))
        if name not in self.members:
            topics = self.draw(SUBSCRIPTIONS)
            self.attempt(name, lambda: self.add(name, topics))

    def add(self, name: str, topics: list[str]) -> None:
        self.members[name] = Sharer(self.world, name, *topics)

    def beat(self) -> None:
        for name, member in self.some():
            self.attempt(name, member.beat)

    def change(self) -> None:
        for name, member in self.some():
            topics = self.draw(SUBSCRIPTIONS)
            self.attempt(name, lambda member=member, topics=topics: member.beat(*topics))

    def leave(self) -> None:
        for name, member in self.some():
            self.attempt(name, member.leave)
            self.members.pop(name, None)

    def lose(self) -> None:
        """Lose an answer: the member goes on with its previous epoch."""
        for name, member in self.some():
            epoch, held = member.epoch, member.held
            self.attempt(name, member.beat)
            member.epoch, member.held, member.has_lost_answer = epoch, held, True

    def silence(self) -> None:
        self.world.elapse(SESSION_MS)

    def fail(self) -> None:
        self.world.refusal = error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.beat()
        self.world.refusal = None

    def state(self) -> None:
        states = self.world.states
        event = self.draw(st.sampled_from(("fails", "works", "waits", "answers", "forgets")))
        if event == "fails":
            states.code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif event == "works":
            states.code = 0
        elif event == "waits":
            states.holds = True
        elif event == "answers":
            states.holds = False
            states.release()
        else:
            states.held.clear()

    def offsets(self) -> None:
        topic = self.draw(st.sampled_from(TOPICS))
        answer = self.draw(
            st.sampled_from(
                (
                    lambda: self.world.alter(topic, {0: 5}),
                    lambda: self.world.forget(topic),
                    self.world.delete_group,
                )
            )
        )()
        error = answer.error()
        assert error is None or error.code in REFUSALS, error

    def topics(self) -> None:
        name = self.draw(st.sampled_from(TOPICS))
        known = self.world.image.topics_by_name.get(name)
        if known is None:
            self.world.make_topic(name, self.draw(st.integers(1, 4)))
        elif self.draw(st.booleans()):
            self.world.make_topic(name, len(known.partitions) + 1)
        else:
            self.world.forget_topic(name)

    def restart(self) -> None:
        """Load the shard anew; answers to the former one find a shard that is gone."""
        self.world.states.held.clear()
        before = self.world.shard.groups.get(GROUP)
        self.world.shard.unloaded(error_for(ErrorCode.NOT_COORDINATOR))
        self.world.context.timer.cancel_all()
        self.world = self.world.restarted(compacted=self.draw(st.booleans()))
        for member in self.members.values():
            member.world = self.world
        after = self.world.shard.groups.get(GROUP)
        assert (before is None) == (after is None)
        if isinstance(before, ShareGroup):
            assert isinstance(after, ShareGroup)
            assert after.members == before.members
            assert after.target == before.target
            assert after.names == before.names
            assert after.state_topics == before.state_topics
            assert after.group_epoch == before.group_epoch
            assert after.target_epoch == before.target_epoch

    def some(self) -> list[tuple[str, Sharer]]:
        names = sorted(self.members)
        if not names:
            return []
        name = self.draw(st.sampled_from(names))
        return [(name, self.members[name])]

    def attempt(self, name: str, action: Callable[[], Any]) -> None:
        try:
            action()
        except KafkaError as error:
            assert error.code in REFUSALS, error
            if error.code in GONE:
                self.members.pop(name, None)

    # Truths

    def check(self) -> None:
        group = self.world.shard.groups.get(GROUP)
        if not isinstance(group, ShareGroup):
            self.epoch = 0
            return
        assert group.group_epoch >= max(self.epoch, group.target_epoch)
        self.epoch = group.group_epoch
        counts: dict[str, int] = {}
        for member in group.members.values():
            for topic in member.topics:
                counts[topic] = counts.get(topic, 0) + 1
            assert member.epoch <= group.target_epoch
        assert group.names == counts
        assert not group.state_topics.deleting.keys() & group.state_topics.initialized.keys()

    def end(self) -> None:
        """Let everything settle: then each subscribed partition has a member."""
        self.world.states.code = 0
        self.world.states.holds = False
        self.world.states.release()
        self.world.elapse(SESSION_MS)  # members that were fenced are still there
        for name in NAMES[:2]:
            if name not in self.members:
                self.add(name, ["t"])
        for _ in range(6):
            for name, member in list(self.members.items()):
                self.attempt(name, member.beat)
                if name not in self.members:
                    self.add(name, list(member.topics))
            self.world.elapse(1000)
        group = self.world.share_group()
        topics = self.world.image.topics_by_name
        wanted = {
            (topic, each.partition)
            for topic in group.names
            if topic in topics
            for each in topics[topic].partitions
        }
        held = [(t, n) for member in self.members.values() for t in member.held
                for n in member.held[t]]  # fmt: skip
        assert set(held) == wanted
        for member in group.members.values():
            ids = {topics[name].topic_id for name in member.topics if name in topics}
            assert member.assigned.keys() <= ids
            assert member.epoch == group.target_epoch == group.group_epoch
        places = {place for (_, place) in self.world.states.states}
        assert {(topics[t].topic_id, n) for t, n in wanted} <= places


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_in_the_end_every_partition_has_a_member(data: st.DataObject) -> None:
    History(data.draw).run(data.draw(st.integers(1, 25)))
