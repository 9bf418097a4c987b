"""Random histories of a group: no partition has two readers, and in the end all are read.

Members come, go, fall silent, and change their subscriptions; topics come, grow and go; answers are
lost, appends fail, the shard restarts, with its log compacted or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.errors import KafkaError, error_for
from tests.coordinator.consumer.world import GROUP, REBALANCE_MS, Member, World, settle
from wire.error_codes import ErrorCode

TOPICS = ("t", "u", "v")
NAMES = ("m1", "m2", "m3", "m4")
PATTERNS = ("t|u", ".*", "v", "none", "")
SUBSCRIPTIONS = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=3, unique=True)
FENCED = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_INSTANCE_ID,
}


class History:
    """The present members, their true partitions, and a check after each event."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.world = World(group_consumer_assignors=draw(st.sampled_from(("uniform", "range"))))
        self.members: dict[str, Member] = {}
        for topic in TOPICS:
            self.world.make_topic(topic, draw(st.integers(1, 4)))

    def run(self, step_count: int) -> None:
        steps = (self.join, self.beat, self.beat, self.beat, self.lose, self.leave, self.change)
        steps += (self.fail, self.restart, self.topics, self.silence, self.static)
        for _ in range(step_count):
            self.draw(st.sampled_from(steps))()
            self.check()
        self.end()

    # Events

    def _some(self) -> Member | None:
        names = sorted(self.members)
        return self.members[self.draw(st.sampled_from(names))] if names else None

    def join(self) -> None:
        name = self.draw(st.sampled_from(NAMES))
        if name in self.members:
            return
        fields = {"server_assignor": self.draw(st.sampled_from((None, *self._assignors())))}
        if self.draw(st.booleans()):
            fields["subscribed_topic_regex"] = self.draw(st.sampled_from(PATTERNS))
        self.members[name] = self.world.join(name, *self.draw(SUBSCRIPTIONS), **fields)

    def static(self) -> None:
        """Let a static member come, go for a while, or return under another id."""
        former = self.members.pop("s", None)
        if former is not None and former.epoch > 0:
            self.asked(former, lambda: former.leave(-2))
            former.owned = {}
        number = len(self.world.log)
        try:
            self.members["s"] = self.world.join(f"s{number}", "t", instance_id="i")
        except KafkaError as error:
            assert error.code == ErrorCode.UNRELEASED_INSTANCE_ID, error

    def beat(self) -> None:
        member = self._some()
        if member is not None:
            self.asked(member, member.confirm)

    def lose(self) -> None:
        """Lose an answer: the member keeps its former state, and next sends a full request."""
        member = self._some()
        if member is None:
            return
        epoch, owned = member.epoch, member.owned
        self.asked(member, member.confirm)
        member.epoch, member.owned = epoch, owned
        self.asked(member, lambda: member.confirm(**everything(member)))

    def leave(self) -> None:
        member = self._some()
        if member is not None:
            self.members = {name: m for name, m in self.members.items() if m is not member}
            self.asked(member, member.leave)

    def change(self) -> None:
        member = self._some()
        if member is None:
            return
        member.topics = tuple(self.draw(SUBSCRIPTIONS))
        said: dict[str, Any] = {"subscribed_topic_names": list(member.topics)}
        if member.instance_id is None and self.draw(st.booleans()):
            said["subscribed_topic_regex"] = self.draw(st.sampled_from(PATTERNS))
            member.fields["subscribed_topic_regex"] = said["subscribed_topic_regex"]
        self.asked(member, lambda: member.confirm(**said))

    def fail(self) -> None:
        self.world.refusal = error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        member = self._some()
        if member is not None:
            try:
                self.asked(member, member.confirm)
            except KafkaError as error:
                assert error.code == ErrorCode.COORDINATOR_NOT_AVAILABLE, error
        self.world.refusal = None

    def restart(self) -> None:
        before = facts(self.world)
        again = self.world.restarted(
            compacted=self.draw(st.booleans()),
            group_consumer_assignors=self.world.context.config.group_consumer_assignors,
        )
        assert facts(again) == before
        self.world = again
        for member in self.members.values():
            member.world = again

    def topics(self) -> None:
        topic = self.draw(st.sampled_from(TOPICS))
        count = self.draw(st.integers(0, 5))
        image = self.world.image.topics_by_name.get(topic)
        if count == 0:
            self.world.delete_topic(topic)
            for member in self.members.values():
                # A later topic of the same name is another topic.
                member.owned.pop(topic, None)
        elif image is None or len(image.partitions) < count:
            self.world.make_topic(topic, count)

    def silence(self) -> None:
        """Let all members be silent for a while."""
        self.world.elapse(self.draw(st.sampled_from((5_000, 31_000, 46_000))))
        group = self.world.shard.groups.get(GROUP)
        known = group.members if isinstance(group, ConsumerGroup) else {}
        # A removed member stops reading: its own session has ended as well.
        self.members = {name: m for name, m in self.members.items() if m.member_id in known}

    def asked(self, member: Member, request: Callable[[], Any]) -> None:
        """Send a heartbeat; a fenced member gives up all partitions and joins again."""
        try:
            request()
        except KafkaError as error:
            if error.code not in FENCED:
                raise
            member.owned = {}
            if member.epoch > 0 and self.world.refusal is None:
                self.rejoin(member)

    def rejoin(self, member: Member) -> None:
        try:
            member.rejoin()
        except KafkaError as error:
            assert error.code == ErrorCode.UNRELEASED_INSTANCE_ID, error
            self.members = {name: m for name, m in self.members.items() if m is not member}

    def _assignors(self) -> tuple[str, ...]:
        return tuple(self.world.context.config.group_consumer_assignors)

    # Invariants

    def check(self) -> None:
        """Assert that no partition has two readers, by the members or by the group."""
        owners: dict[tuple[str, int], str] = {}
        for member in self.members.values():
            for topic, numbers in member.owned.items():
                for number in numbers:
                    other = owners.setdefault((topic, number), member.member_id)
                    assert other == member.member_id, (topic, number, other, member.member_id)
        group = self.world.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        held: dict[tuple[bytes, int], str] = {}
        for known in group.members.values():
            for epochs_by_topic in (known.assigned, known.revoking):
                for topic_id, epochs in epochs_by_topic.items():
                    for number in epochs:
                        other = held.setdefault((topic_id, number), known.member_id)
                        assert other == known.member_id
                        assert group.holders.holder(topic_id, number) == known.member_id
        assert group.target_epoch <= group.group_epoch

    def end(self) -> None:
        """Let the group settle; assert that its assignments are the members' partitions."""
        self.world.elapse(10_001)
        members = list(self.members.values())
        for _ in range(3):
            for member in members:
                self.asked(member, member.confirm)
        settle(*self.members.values())
        self.check()
        group = self.world.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup) or not self.members:
            return
        heard = {member.member_id for member in self.members.values()}
        if heard == group.members.keys():
            assert group.state_name() == "Stable"
            owned = {
                (topic, number)
                for member in self.members.values()
                for topic, numbers in member.owned.items()
                for number in numbers
            }
            assert owned == expected(self.world, group)


def everything(member: Member) -> dict[str, Any]:
    """Return the fields of a full request."""
    return {
        "rebalance_timeout_ms": REBALANCE_MS,
        "subscribed_topic_names": list(member.topics),
        "subscribed_topic_regex": member.fields.get("subscribed_topic_regex"),
    }


def expected(world: World, group: ConsumerGroup) -> set[tuple[str, int]]:
    """Return every partition of every subscribed topic."""
    return {
        (name, number)
        for name, topic in world.image.topics_by_name.items()
        for number in range(len(topic.partitions))
        if group.is_subscribed_to(name)
    }


def facts(world: World) -> dict[str, Any]:
    """Return all state and records of a group."""
    return {
        group_id: (
            group.group_epoch,
            group.target_epoch,
            group.target_made_ms,
            group.metadata_hash,
            group.members,
            group.static_members,
            group.target,
            group.subscriptions.names,
            group.subscriptions.regexes,
            group.subscriptions.resolved,
            group.assignor_votes.counts,
            group.classic_protocols.member_count,
            group.classic_protocols.common(),
            group.state_name(),
        )
        for group_id, group in world.shard.groups.items()
        if isinstance(group, ConsumerGroup)
    }


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_history(data: st.DataObject) -> None:
    History(data.draw).run(step_count=25)
