"""SIGKILL of a writer at any moment: the records that it acknowledged through a pipe survive.

A cycle is one life: a forked process opens a directory in which earlier writers were killed, reads
all of it, writes more, and dies

    threads   some milliseconds later, with five threads at work
    opcode    before the k-th opcode of storage, one step after the other
    opening   before the k-th opcode of the recovery, or some milliseconds into it
    closing   some milliseconds into its clean end
    clean     never: it ends normally

Then the writer's output is compared with the files by a separate reader, and by the next life
through the API. There are directories of both levels; each grows old before a new one takes its
place.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable

from tests.crash.child import HUNG_AFTER_S, Child, Say
from tests.crash.inspection import Inspector
from tests.crash.ledger import Ledger
from tests.crash.opcodes import Countdown
from tests.crash.report import Options, Report
from tests.crash.writer import Writer
from tests.support.sizes import size

CI_COUNT = size(100, full=1_000)
SOAK_COUNT = 100_000

WAYS = ("threads",) * 5 + ("opcode",) * 3 + ("opening", "opening", "closing", "clean")
_DIRECTORIES = ("os", "fsync", "os", "fsync")
_LIVES_MAX = 400
_FORGET_EVERY = 50
_OFFSETS_EVERY = 5
_OPENED = b"opened"


class Victim:
    """A directory and its writers, one after the other."""

    def __init__(self, base: str, number: int, durability: str) -> None:
        self.directory = f"{base}/{number}/data"
        self.ledger = Ledger(durability)
        self.inspector = Inspector(self.directory)
        self.lives = 0

    def live(self, way: str, chance: random.Random, report: Report) -> None:
        """Run one life and examine its result."""
        self.lives += 1
        seed = chance.getrandbits(32)
        if way == "opcode":
            child = Child(_until_opcode(self, seed, int(10 ** chance.uniform(0, 4.8))))
        elif way == "opening" and chance.random() < 0.7:
            child = Child(_opening_until_opcode(self, seed, int(10 ** chance.uniform(0, 4.8))))
        elif way in {"closing", "clean"}:
            child = Child(_closing(self, seed))
        else:
            child = Child(_threads(self, seed))
        try:
            self._attend(child, way, chance, report)
        finally:
            child.close()
        for problem in self.ledger.problems:
            report.fail(f"{self.directory} ({self.ledger.durability}), {way}: {problem}")
        self.ledger.problems.clear()

    def _attend(self, child: Child, way: str, chance: random.Random, report: Report) -> None:
        """Read the output of the writer, kill it in time, and read the rest."""
        if way == "opening":
            deadline = time.monotonic() + chance.random() * 0.02
            while time.monotonic() < deadline and self._take(child.read(0.001)) != _OPENED:
                pass
        else:
            started = time.monotonic()
            while self._take(child.read(1.0)) != _OPENED and not child.is_ended:
                if time.monotonic() - started > HUNG_AFTER_S:
                    self.ledger.problems.append("opening it hangs")
                    break
            pause = min(chance.expovariate(60), 0.2)
            deadline = time.monotonic() + (HUNG_AFTER_S if way in {"opcode", "clean"} else pause)
            while time.monotonic() < deadline and not child.is_ended:
                self._take(child.read(max(0.0, deadline - time.monotonic())))
            if way in {"opcode", "clean"} and not child.is_ended:
                self.ledger.problems.append("its work hangs")
        child.kill()
        self._take(child.rest())
        report.add(f"died {how}" if (how := child.how) else "ended cleanly")
        if "exit" in child.how:
            self.ledger.problems.append(f"it ended {child.how}")

    def _take(self, lines: list[bytes]) -> bytes:
        is_opened = False
        for line in lines:
            if line == _OPENED:
                is_opened = True
            else:
                self.ledger.apply(line)
        return _OPENED if is_opened else b""

    def look(self, report: Report) -> None:
        """Inspect the files that it left."""
        if self.lives % _FORGET_EVERY == 0:
            self.inspector.forget()
        problems = self.inspector.look(self.ledger, report)
        if self.lives % _OFFSETS_EVERY == 0:
            problems += self.inspector.look_at_offsets(self.ledger, report)
        for problem in problems:
            report.fail(f"{self.directory} ({self.ledger.durability}), files: {problem}")


def run(options: Options) -> Report:
    report = Report("kill", options)
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="crash-kill-") as base:
        warm(f"{base}/warm")
        made = len(_DIRECTORIES)
        victims = [Victim(base, number, level) for number, level in enumerate(_DIRECTORIES)]
        for _ in range(options.count):
            slot = chance.randrange(len(victims))
            victim = victims[slot]
            broken = report.failure_count
            victim.live(chance.choice(WAYS), chance, report)
            victim.look(report)
            report.add("cycles")
            for figure, count in victim.ledger.acknowledged.items():
                report.add(figure, count)
            victim.ledger.acknowledged.clear()
            if report.failure_count > broken or victim.lives >= _LIVES_MAX:
                if report.failure_count > broken:
                    _keep(victim, report)
                shutil.rmtree(os.path.dirname(victim.directory), ignore_errors=True)
                victims[slot] = Victim(base, made, victim.ledger.durability)
                made += 1
    return report


def _keep(victim: Victim, report: Report) -> None:
    """Keep a broken directory for inspection."""
    kept = tempfile.mkdtemp(prefix="crash-kept-")
    shutil.copytree(victim.directory, f"{kept}/data", dirs_exist_ok=True)
    report.note(f"{victim.directory} is kept in {kept}")


def warm(directory: str) -> None:
    """each cut tail logs a warning"""
    logging.getLogger("embedlog").setLevel(logging.ERROR)  # each torn tail logs a warning
    writer = Writer(directory, Ledger("os"), 1, lambda _: None)
    writer.prepare()
    writer.run_threads(0.1)
    writer.verify()
    writer.close()


Work = Callable[[Say], None]


def _opened(victim: Victim, seed: int, say: Say) -> Writer:
    writer = Writer(victim.directory, victim.ledger, seed, say)
    writer.verify()
    say(_OPENED)
    writer.prepare()
    return writer


def _threads(victim: Victim, seed: int) -> Work:
    return lambda say: _opened(victim, seed, say).run_threads(HUNG_AFTER_S)


def _closing(victim: Victim, seed: int) -> Work:
    def work(say: Say) -> None:
        writer = _opened(victim, seed, say)
        for _ in range(20):
            writer.step()
        writer.close()

    return work


def _until_opcode(victim: Victim, seed: int, opcode: int) -> Work:
    def work(say: Say) -> None:
        writer = _opened(victim, seed, say)
        countdown = Countdown(opcode, _kill_oneself)
        countdown.start()
        while True:
            writer.step()

    return work


def _opening_until_opcode(victim: Victim, seed: int, opcode: int) -> Work:
    def work(say: Say) -> None:
        countdown = Countdown(opcode, _kill_oneself)
        countdown.start()
        writer = Writer(victim.directory, victim.ledger, seed, say)
        countdown.stop()
        writer.verify()
        say(_OPENED)
        writer.prepare()
        writer.run_threads(HUNG_AFTER_S)

    return work


def _kill_oneself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
