"""`at_exit`: callbacks run once at the end of the interpreter, in order, in this process only."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os
from embedlog.runtime import at_exit

def say(word):
    return lambda: print(word, flush=True)

def fail():
    raise ValueError("failed")

{code}
"""


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(code=code)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_producers_come_before_clusters_and_the_newest_first() -> None:
    done = _run(
        "at_exit.register(say('first cluster'), at_exit.CLUSTERS)\n"
        "at_exit.register(say('producer'), at_exit.PRODUCERS)\n"
        "at_exit.register(say('second cluster'), at_exit.CLUSTERS)\n"
    )
    assert done.stdout.splitlines() == ["producer", "second cluster", "first cluster"]


def test_an_unregistered_callback_is_not_called() -> None:
    done = _run(
        "forget = at_exit.register(say('forgotten'), at_exit.CLUSTERS)\n"
        "at_exit.register(say('kept'), at_exit.CLUSTERS)\n"
        "forget()\nforget()\n"
    )
    assert done.stdout.splitlines() == ["kept"]


def test_an_error_in_a_callback_is_printed_and_the_others_run() -> None:
    done = _run(
        "at_exit.register(say('cluster'), at_exit.CLUSTERS)\n"
        "at_exit.register(fail, at_exit.PRODUCERS)\n"
    )
    assert done.stdout.splitlines() == ["cluster"]
    assert "ValueError: failed" in done.stderr


def test_a_forked_child_does_not_run_its_parents_callbacks() -> None:
    done = _run(
        "at_exit.register(lambda: print('closed in', os.getpid(), flush=True), at_exit.CLUSTERS)\n"
        "print('parent', os.getpid(), flush=True)\n"
        "child = os.fork()\n"
        "if child:\n"
        "    os.waitpid(child, 0)\n"
    )
    parent, closed = done.stdout.splitlines()
    assert closed.split()[-1] == parent.split()[-1]
