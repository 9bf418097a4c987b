"""`tell`: one story of processes that share a directory, in which processes are killed."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, NamedTuple

import embedlog
from tests.cluster.processes.roles import Work
from tests.crash.child import Child
from tests.queue.processes import roles
from tests.queue.processes.check import problems
from tests.queue.processes.events import ACKED, PUT, REJECTED, Event, parse

PUTTERS = 2
WORKERS = 3
KILLS = 8
CALM_S = 60.0


class Told(NamedTuple):
    """The outcome of a story."""

    problems: list[str]
    put_count: int
    owner_deaths: int
    takeovers: int


class Stage:
    """The processes of a story, and their events."""

    def __init__(self, hands: Any, path: str, durability: str, seed: int) -> None:
        self._hands = hands
        self._path = path
        self._durability = durability
        self.chance = random.Random(seed)
        self._number = 0
        self.running: list[tuple[str, Child]] = []
        self.events: list[Event] = []
        self.left: int | None = None
        """The last number of the idler; None if it has said none since this was set to None."""

    def start(self, role: str) -> None:
        """Start a process in a role."""
        self._number += 1
        self.running.append((role, Child(self._work(role))))

    def _work(self, role: str) -> Work:
        seed, place = self.chance.getrandbits(32), (self._hands, self._path, self._durability)
        if role == "putter":
            return roles.putting(*place, f"p{self._number}", seed)
        if role == "worker":
            return roles.working(*place, seed)
        return roles.idling(*place)

    def kill(self, victim: Child) -> str:
        """Kill a process, take its last lines, and return its role."""
        role = next(role for role, child in self.running if child is victim)
        self.running.remove((role, victim))
        victim.kill()
        self._take(victim, victim.rest())
        victim.close()
        return role

    def owner(self) -> Child | None:
        """Return the process that has the directory open, by the lock file."""
        try:
            words = Path(self._path, ".lock").read_text().split()
        except FileNotFoundError:
            return None
        pid = int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0
        return next((child for _, child in self.running if child.pid == pid), None)

    def listen(self, seconds: float) -> None:
        """Take lines for a while. No process may end by itself."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for role, child in self.running:
                self._take(child, child.read(0.001))
                assert not child.is_ended, f"a {role} ended {child.end()}"

    def pending(self) -> set[str]:
        """Return the jobs that nobody has settled, and whose last event says that they come."""
        put = {event.job for event in self.events if event.kind == PUT}
        last = dict.fromkeys(put, PUT)  # its line may come after the lines of a worker
        last |= {event.job: event.kind for event in self.events if event.kind != PUT}
        settled = {event.job for event in self.events if event.kind in (ACKED, REJECTED)}
        return {job for job in put - settled if last[job] in self._hands.PENDING}

    def _take(self, child: Child, lines: list[bytes]) -> None:
        for line in lines:
            if line.startswith(b"left "):
                self.left = int(line[5:])
            else:
                self.events.append(parse(child.pid, line))

    def close(self) -> None:
        """Kill everybody."""
        for _, child in self.running:
            child.close()


def tell(
    hands: Any, path: str, seed: int, *, durability: str = "os", calm_s: float = CALM_S
) -> Told:
    """Run a story and check it.

    `hands`: see `roles`. `calm_s`: how long the workers may take to finish the jobs once nobody is
    killed any more.
    """
    with embedlog.open(path, durability=durability, **roles.SETTINGS) as made:
        hands.create(made)
    stage = Stage(hands, path, durability, seed)
    owner_deaths = takeovers = 0
    try:
        for role in ["idler"] + ["putter"] * PUTTERS + ["worker"] * WORKERS:
            stage.start(role)
        deadline = time.monotonic() + CALM_S
        while not stage.events:
            assert time.monotonic() < deadline, "nobody puts jobs"
            stage.listen(0.01)
        former = None
        for _ in range(KILLS):
            stage.listen(stage.chance.random() * 0.6)
            owner = stage.owner()
            takeovers += owner is not None and owner is not former
            former = owner
            victim = owner
            if victim is None or stage.chance.random() < 0.4:
                victim = stage.chance.choice(stage.running)[1]
            owner_deaths += victim is owner or owner is None
            stage.start(stage.kill(victim))
        for _, child in [each for each in stage.running if each[0] == "putter"]:
            owner_deaths += child is stage.owner()
            stage.kill(child)
        deadline = time.monotonic() + calm_s
        unfinished: list[str] = []
        stage.left = None
        while stage.left is None or stage.left > 0 or stage.pending():
            if time.monotonic() > deadline:
                late = ", ".join(sorted(stage.pending()))
                unfinished = [f"{stage.left} jobs are left after {calm_s} s: {late}"]
                break
            stage.listen(0.1)
        stage.listen(0.2)  # the last outcomes
        owner_deaths += 1  # a death at an unlucky moment may be another owner's
        stage.close()
        found = problems(
            stage.events,
            hands.dead(path),
            delivery_limit=hands.DELIVERY_LIMIT,
            owner_deaths=owner_deaths,
            fetches_ahead=hands.FETCHES_AHEAD,
        )
        put_count = sum(event.kind == PUT for event in stage.events)
        return Told(unfinished + found, put_count, owner_deaths, takeovers)
    finally:
        stage.close()
