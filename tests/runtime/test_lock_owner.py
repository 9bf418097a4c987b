"""The error for a locked directory names the owner, since when, and a remedy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import embedlog
from embedlog.runtime.lock_owner import addresses_in, why_locked

OWNER = "pid 4711 since 2026-01-31T12:00:00+0000 boot 6e0b2a5c\n"


def test_the_error_names_the_addresses_of_an_owner_that_listens() -> None:
    assert why_locked("data/.lock", OWNER + "at 127.0.0.1:9092 [::1]:9093\n", 1) == (
        "data is held by pid 4711 since 2026-01-31 12:00:00+0000; it listens: connect to "
        "127.0.0.1:9092, [::1]:9093, or close it there first"
    )


def test_the_error_proposes_to_listen_to_an_owner_that_does_not() -> None:
    assert why_locked("/data/.lock", OWNER, 1) == (
        "/data is held by pid 4711 since 2026-01-31 12:00:00+0000; it does not listen: let the "
        "owner call listen() of its cluster and connect to that address, or close it there first"
    )


def test_the_error_distinguishes_this_process_from_an_unknown_owner() -> None:
    assert "this process, since 2026" in why_locked("data/.lock", OWNER, 4711)
    assert "use the cluster that is open already" in why_locked("data/.lock", OWNER, 4711)
    assert "did not say who it is" in why_locked("data/.lock", "", 4711)


def test_addresses_are_read_from_whole_and_from_torn_files() -> None:
    assert addresses_in(OWNER + "at 127.0.0.1:9092 [::1]:9093\n") == [
        "127.0.0.1:9092",
        "[::1]:9093",
    ]
    for content in ("", OWNER, OWNER.rstrip(), OWNER + "2:9092\n", "\n\nat 127.0.0.1:9092\n"):
        assert addresses_in(content) == []


def _refusal(path: Path) -> str:
    script = (
        "import sys, embedlog\n"
        "try: embedlog.open(sys.argv[1])\n"
        "except embedlog.DirectoryLocked as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_another_process_sees_the_current_listeners(tmp_path: Path) -> None:
    with embedlog.open(tmp_path) as cluster:
        said = _refusal(tmp_path)
        assert f"held by pid {os.getpid()} since " in said
        assert "call listen()" in said
        first, second = cluster.listen(), cluster.listen()
        assert f"connect to {first.address}, {second.address}, or" in _refusal(tmp_path)
        first.close()
        address = re.search(r"connect to (127\S+), or", _refusal(tmp_path))
        assert address is not None
        with embedlog.Producer(address[1]) as producer:
            assert producer.send("events", b"v").result(10).offset == 0
        with pytest.raises(embedlog.DirectoryLocked, match="this process"):
            embedlog.open(tmp_path)
    assert not _refusal(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names the owner of a lock")
def test_a_new_owner_without_a_record_is_not_confused_with_the_previous_one(
    tmp_path: Path,
) -> None:
    """An owner records its identity after taking the lock; another process may look in between."""
    lock = tmp_path / ".lock"
    lock.write_text("pid 1 since 2026-01-31T12:00:00+0000 boot an-earlier-one\n")
    program = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(embedlog.DirectoryLocked, match=f"held by pid {owner.pid};"):
            embedlog.open(tmp_path)
        owner.communicate()
