"""Seeds, each with another story of members that join, leave, die, freeze and return."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from tests.interop.groups.group_run import GroupRun
from tests.interop.groups.member import CLASSIC, CONSUMER, Member
from tests.support.sizes import size

pytestmark = [pytest.mark.interop, pytest.mark.slow]

StartRun = Callable[..., GroupRun]
SEEDS = range(size(6, full=20))
STEPS = 7
MEMBERS_MAX = 4
PAUSE_SECONDS_MAX = 0.8
GROUPS = (
    [("classic", client) for client in CLASSIC],
    [("consumer", client) for client in CONSUMER],
    [*(("classic", client) for client in CLASSIC), *(("consumer", c) for c in CONSUMER)],
)
"""Clients that may join: of one protocol, of the other, or of both."""


class Story:
    """The events of one group, drawn from a seed; `told` lists them for the message of a failed
    test.
    """

    def __init__(self, seed: int, run: GroupRun) -> None:
        self._random = random.Random(seed)
        self._run = run
        self._kinds = GROUPS[seed % len(GROUPS)]
        self._frozen: list[Member] = []
        self._names: list[str] = []
        self.told: list[str] = []

    def tell(self) -> None:
        """Start some members and do random steps; at the end wake all of them."""
        for _ in range(2):
            self._join()
        self._run.wait_until_stable()
        steps = (self._join, self._join, self._leave, self._kill, self._freeze, self._replace)
        for _ in range(STEPS):
            self._run.produce(self._random.randrange(100))
            self._random.choice(steps)()
            time.sleep(self._random.random() * PAUSE_SECONDS_MAX)
        if not self._run.alive():
            self._join()
        for member in self._frozen:
            self._say("thaw", member)
            member.thaw()
        self._run.produce(50)

    def _join(self) -> None:
        if len(self._run.alive()) >= MEMBERS_MAX:
            self._leave()
        kinds = list(self._kinds)
        if any(member.client == "java" for member in self._run.members):
            kinds = [kind for kind in kinds if kind[1] != "java"]  # one JVM in a story is enough
        protocol, client = self._random.choice(kinds)
        self._say(f"join by {protocol}", self._run.join(client, protocol=protocol))

    def _leave(self) -> None:
        for member in self._one_of(self._run.alive()):
            self._say("leave", member)
            member.close()

    def _kill(self) -> None:
        for member in self._one_of(self._run.alive()):
            self._say("kill", member)
            member.kill()

    def _freeze(self) -> None:
        # VerifiableConsumer reports a loss as a revocation, which the checker would not accept.
        members = [
            member
            for member in self._run.alive()
            if member.client != "java" and not _may_look_for_the_beginning(member)
        ]
        for member in self._one_of(members):
            self._say("freeze", member)
            member.freeze()
            self._frozen.append(member)

    def _replace(self) -> None:
        """Kill a static member of the classic protocol; another one continues under its id."""
        if self._kinds == GROUPS[1]:
            return self._kill()
        client = self._random.choice(("confluent", "kafka_python"))
        name = f"static-{len(self._names)}"
        self._names.append(name)
        first = self._run.join(client, instance=name)
        self._say("join by name", first)
        self._run.wait(lambda: bool(first.read()), lambda: f"{first} does not join")
        first.kill()
        self._say("return", self._run.join(client, instance=name))
        return None

    def _one_of(self, members: list[Member]) -> list[Member]:
        return [self._random.choice(members)] if members else []

    def _say(self, what: str, member: Member) -> None:
        self.told.append(f"{what}: {member.name}")


def _may_look_for_the_beginning(member: Member) -> bool:
    """Return whether librdkafka may be looking up beginnings, because nothing was committed.

    If it is frozen then, a timer repeats the look-up when it wakes, although the partitions were
    lost and assigned again meanwhile. It then reads from the beginning, without regard to commits.
    """
    if member.client != "confluent":
        return False
    last = next((event for event in reversed(member.read()) if event.partitions), None)
    return last is None or last.kind != "records"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_promise_is_broken(seed: int, start_run: StartRun) -> None:
    run = start_run(partitions=5)
    story = Story(seed, run)
    try:
        story.tell()
        run.finish()
    except AssertionError as error:
        raise AssertionError(f"{error}\nseed {seed}: {'; '.join(story.told)}") from error
