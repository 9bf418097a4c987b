"""Members of groups, with a connection each and the ids that the broker gave them."""

from __future__ import annotations

import functools
from typing import Any

from tests.golden.group_requests import (
    MEMBER_ID_REQUIRED,
    OK,
    Protocols,
    beat,
    describe,
    describe_consumers,
    first_beat,
    heartbeat,
    join,
    leave,
    sync,
)
from tests.golden.run import Run
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.join_group import JoinGroupRequest

JOIN, SYNC, HEARTBEAT, LEAVE, DESCRIBE, BEAT = 9, 5, 4, 5, 6, 1
ID_REQUIRED_FROM = 4
PARTITION_COUNT = 50
"""Number of partitions of the topic of the offsets."""


class Member:
    """A classic member. It uses the newest versions by default, and learns ids from answers.

    `assigned` is the default assignment from the leader; by default the member's name.
    """

    def __init__(
        self,
        run: Run,
        group: str,
        name: str,
        *,
        version: int = JOIN,
        protocols: Protocols | None = None,
        instance: str | None = None,
        assigned: bytes | None = None,
        **fields: Any,
    ) -> None:
        self.run = run
        self.group = group
        self.name = f"{group} {name}"
        self.id = ""
        self.generation = -1
        self.protocol: str | None = None
        self._version = version
        self.instance = instance
        self.assigned = self.name.encode() if assigned is None else assigned
        self.kind = fields.get("kind", "consumer")
        self.fields = {"protocols": protocols or [("range", name.encode())], **fields}

    def joining(self, **fields: Any) -> JoinGroupRequest:
        """Return its JoinGroup; `fields` replace the usual fields."""
        member = fields.pop("member", self.id)
        instance = fields.pop("instance", self.instance)
        return join(self.group, member, instance=instance, **{**self.fields, **fields})

    def join(self, note: str, **fields: Any) -> Any:
        """One step: a join that is answered at once."""
        answer = self.run.send(self.joining(**fields), self._version, note, on=self.name)
        return self._learn(answer)

    def begin_join(self, note: str = "", *, keep: bool = True, **fields: Any) -> None:
        """Join, and wait."""
        self.run.begin(self.joining(**fields), self._version, note, on=self.name, keep=keep)

    def finish_join(self, *, keep: bool = True) -> Any:
        """Return the answer to `begin_join`."""
        return self._learn(self.run.finish(on=self.name, keep=keep))

    def get_id(self) -> None:
        """Without a step: get the member id, and stay pending."""
        answer = self.run.setup(self.joining(member=""), self._version, on=self.name)
        assert answer.error_code == MEMBER_ID_REQUIRED, answer
        self.id = answer.member_id
        # The normaliser meets the ids in this order, whatever the order in the leader's list.
        self.run.normal(answer)

    def enter(self) -> None:
        """Without a step: become the first member of the group, and sync."""
        if self._version >= ID_REQUIRED_FROM and self.instance is None:
            self.get_id()
        answer = self.run.setup(self.joining(), self._version, on=self.name)
        self.run.normal(answer)
        assert self._learn(answer).error_code == OK, answer
        self.run.setup(self.syncing({self.id: self.assigned}), SYNC, on=self.name)

    def syncing(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> Any:
        """Return its SyncGroup."""
        values = {"instance": self.instance, "protocol": self.protocol, "kind": self.kind, **fields}
        member, generation = values.pop("member", self.id), values.pop("generation", None)
        generation = self.generation if generation is None else generation
        return sync(self.group, member, generation, assignments, **values)

    def sync(self, note: str, assignments: dict[str, bytes] | None = None, **fields: Any) -> Any:
        """One step: a sync that is answered at once."""
        return self.run.send(self.syncing(assignments, **fields), SYNC, note, on=self.name)

    def begin_sync(self, note: str = "", *, keep: bool = True) -> None:
        """Sync, and wait."""
        self.run.begin(self.syncing(), SYNC, note, on=self.name, keep=keep)

    def finish(self, *, keep: bool = True) -> Any:
        """Return the answer to a sync."""
        return self.run.finish(on=self.name, keep=keep)

    def beat(self, note: str, *, generation: int | None = None, **fields: Any) -> Any:
        """One step: a heartbeat."""
        values = {"instance": self.instance, **fields}
        member = values.pop("member", self.id)
        generation = self.generation if generation is None else generation
        request = heartbeat(self.group, member, generation, **values)
        return self.run.send(request, HEARTBEAT, note, on=f"{self.name} beats")

    def leave(self, note: str = "", *, keep: bool = True) -> Any:
        """Leave, by member id."""
        request = leave(self.group, (self.id, None))
        if keep:
            return self.run.send(request, LEAVE, note, on=f"{self.name} beats")
        return self.run.setup(request, LEAVE, on=f"{self.name} beats")

    def _learn(self, answer: Any) -> Any:
        if answer is not None:
            self.id = answer.member_id or self.id
            if answer.error_code == OK:
                self.generation = answer.generation_id
                self.protocol = answer.protocol_name
        return answer


class Consumers:
    """The members of a group of the consumer protocol, by ids of their own."""

    def __init__(self, run: Run, group: str) -> None:
        self.run = run
        self.group = group
        self.epochs: dict[str, int] = {}

    def join(self, member: str, *topics: str, note: str = "", **fields: Any) -> Any:
        """One step: a member joins."""
        request = first_beat(self.group, member, *topics, **fields)
        return self._send(member, request, note or f"{member} joins")

    def beat(self, member: str, note: str = "", **fields: Any) -> Any:
        """One step: a heartbeat with the latest epoch, or with the given one."""
        epoch = fields.pop("epoch", self.epochs.get(member, 0))
        request = beat(self.group, member, epoch, **fields)
        return self._send(member, request, note or f"{member} again")

    def until_assigned(self, member: str, **fields: Any) -> Any:
        """One step: heartbeats until one brings an assignment."""
        request = beat(self.group, member, self.epochs[member], **fields)
        answer = self.run.until(
            lambda answer: answer.error_code or answer.assignment is not None,
            request, BEAT, f"{member} until it is assigned something",
        )  # fmt: skip
        return self._learn(member, answer)

    def show(self, note: str = "described") -> Any:
        """One step: the group in ConsumerGroupDescribe."""
        return self.run.send(describe_consumers(self.group), BEAT, note)

    def _send(self, member: str, request: Any, note: str) -> Any:
        return self._learn(member, self.run.send(request, BEAT, note))

    def _learn(self, member: str, answer: Any) -> Any:
        if answer is not None and answer.error_code == 0:
            self.epochs[member] = answer.member_epoch
        return answer


def warm_up(run: Run) -> None:
    """Wait until groups have coordinators: the first request creates the topic of the offsets.

    A real broker takes its time, so every partition of the topic gets a request.
    """
    ready = FindCoordinatorRequest(key="warm")
    run.until(lambda answer: answer.error_code == OK, ready, 1, keep=False)
    if not run.target.is_patient:
        return
    everywhere = describe(*_a_group_of_each_partition())
    run.until(
        lambda answer: not any(row.error_code for row in answer.groups), everywhere, 5, keep=False
    )


@functools.cache
def _a_group_of_each_partition() -> tuple[str, ...]:
    """Return group names whose Java hashes cover every partition."""
    names: dict[int, str] = {}
    number = 0
    while len(names) < PARTITION_COUNT:
        name = f"warm-{number}"
        hashed = functools.reduce(lambda sum_, char: 31 * sum_ + ord(char), name, 0)
        names.setdefault((hashed & 0x7FFF_FFFF) % PARTITION_COUNT, name)
        number += 1
    return tuple(names.values())


def form(run: Run, group: str, *names: str, **fields: Any) -> list[Member]:
    """Without steps: form a stable group; the first member leads."""
    return gather([Member(run, group, name, **fields) for name in names])


def gather(members: list[Member]) -> list[Member]:
    """Do the same with members that have done nothing yet."""
    leader, *others = members
    leader.enter()
    if not others:
        return members
    for member in others:
        if member.instance is None:
            member.get_id()
        member.begin_join(keep=False)
    regather(members)
    return members


def regather(members: list[Member]) -> None:
    """Without steps: the leader rejoins, and all get the new generation and sync."""
    leader, *others = members
    leader.begin_join(keep=False)
    answers = [member.finish_join(keep=False) for member in members]
    for answer in answers:
        leader.run.normal(answer)
        assert answer.error_code == OK, answer
    for member in others:
        member.begin_sync(keep=False)
    assignments = {member.id: member.assigned for member in members}
    leader.run.setup(leader.syncing(assignments), SYNC, on=leader.name)
    for member in others:
        assert member.finish(keep=False).error_code == OK


def show(run: Run, *groups: str, note: str = "described") -> Any:
    """One step: the groups in DescribeGroups."""
    return run.send(describe(*groups), DESCRIBE, note)
