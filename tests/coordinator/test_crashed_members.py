"""In-process members end with the process that had the log open; remote ones do not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.testing import SimFiles, sim_runtime
from tests.apis.conftest import InProcess, newest
from tests.apis.groups import GROUP, form_pair, heartbeat, join, sync

PROTOCOLS = ("classic", "consumer")
SETTINGS = {"group.initial.rebalance.delay.ms": 0}

# Each worker takes and commits one job at a time; the parent kills the process while jobs are under
# way. A cluster in memory comes first, so that waits are measured and not the loading of modules.
_APPLICATION = """
import sys, threading, time
import embedlog

directory, protocol, instance = sys.argv[1:4]
lock = threading.Lock()

def say(text):
    with lock:
        print(text, flush=True)

def work(cluster, number, first):
    settings = {"group_protocol": protocol, "auto_offset_reset": "earliest"}
    if instance:
        settings["group_instance_id"] = f"{instance}-{number}"
    consumer = cluster.consumer(group_id="workers", enable_auto_commit=False, **settings)
    consumer.subscribe(["jobs"])
    while True:
        for record in consumer.poll(10_000, max_records=1):
            first.set()
            consumer.commit()
            say(f"job {record.value.decode()}")

def measure(cluster):
    opened = time.monotonic()
    cluster = cluster()
    if "jobs" not in cluster.topics:
        cluster.create_topic("jobs", 6)
    with cluster.producer() as producer:
        for partition in range(6):
            producer.send("jobs", b"%d" % time.monotonic_ns(), partition=partition).result()
    first = threading.Event()
    for number in range(3):
        threading.Thread(target=work, args=(cluster, number, first), daemon=True).start()
    assert first.wait(30)
    return (time.monotonic() - opened) * 1000

measure(lambda: embedlog.open())
say(f"first {measure(lambda: embedlog.open(directory, durability='os'))}")
time.sleep(60)
"""


def _run_and_kill(directory: Path, protocol: str, instance: str) -> tuple[float, list[str]]:
    """Return (milliseconds from the opening to the first job, the done and stored jobs)."""
    jobs: list[str] = []
    first_ms = None
    with subprocess.Popen(
        [sys.executable, "-c", _APPLICATION, str(directory), protocol, instance],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            what, value = line.split()
            if what == "first":
                first_ms = float(value)
                process.send_signal(signal.SIGKILL)
            elif line.endswith("\n"):
                jobs.append(value)
    assert first_ms is not None
    return first_ms, jobs


@pytest.mark.slow
@pytest.mark.parametrize("instance", ["", "worker"], ids=["dynamic", "static"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ten_crashes_and_no_restart_waits_for_the_dead(
    tmp_path: Path, protocol: str, instance: str
) -> None:
    times_ms = []
    done: list[str] = []
    for _ in range(10):
        first_ms, jobs = _run_and_kill(tmp_path, protocol, instance)
        times_ms.append(first_ms)
        done += jobs
    # The speed depends on the machine. Neither a session of 45 s nor the 3 s of the initial
    # rebalance delay may be part of it.
    assert median(times_ms) < 500, times_ms
    assert max(times_ms) < 2000, times_ms
    assert len(done) == len(set(done)), "a job came again whose offset was stored"


class _Local(InProcess):
    """A client in this process."""

    def send(self, request: Any, version: int | None = None) -> Any:
        transport = self.cluster.connect(self.client_id)
        answer = transport.send(1, request, version=newest(request, version))
        return self._pending(answer)


def _restarted(cluster: Cluster, how: str) -> Cluster:
    """Reopen the cluster, after a close or with the disk that a crash leaves."""
    files: SimFiles = cluster.runtime.files  # type: ignore[assignment]
    if how == "closed":
        cluster.close()
    else:
        files = files.survivor()
    return Cluster("data", SETTINGS, runtime=sim_runtime(2, files=files), durability="fsync")


def _members(cluster: Cluster) -> list[Any]:
    with cluster.admin() as admin:
        described = admin.describe_groups([GROUP])[GROUP]
        return [(member.host, member.instance_id) for member in described.members]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["closed", "crashed"])
@pytest.mark.parametrize("instance", [None, "worker"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_of_the_former_process_are_gone_and_their_offsets_stay(
    protocol: str, instance: str | None, how: str
) -> None:
    settings: dict[str, Any] = {"group_id": GROUP, "group_protocol": protocol}
    if instance is not None:
        settings["group_instance_id"] = instance
    cluster = Cluster("data", SETTINGS, runtime=sim_runtime(1), durability="fsync")
    with cluster.producer() as producer:
        for value in (b"0", b"1"):
            producer.send("jobs", value, partition=0).result()
    consumer = cluster.consumer(auto_offset_reset="earliest", **settings)
    consumer.subscribe(["jobs"])
    assert [record.value for record in consumer.poll(60_000, max_records=1)] == [b"0"]
    consumer.commit()
    assert _members(cluster) == [("/in-process", instance)]

    later = _restarted(cluster, how)
    assert _members(later) == []
    opened_ms = later.runtime.clock.monotonic_ms()
    with later.consumer(auto_offset_reset="earliest", **settings) as consumer:
        consumer.subscribe(["jobs"])
        assert [record.value for record in consumer.poll(60_000)] == [b"1"]
    assert later.runtime.clock.monotonic_ms() - opened_ms < 100
    later.close()


def test_remote_members_are_waited_for_and_the_others_are_not() -> None:
    cluster = Cluster("data", SETTINGS, runtime=sim_runtime(1), durability="fsync")
    remote, local = InProcess(cluster), _Local(cluster)
    leader, follower = form_pair(remote, local)
    remote.call(sync(leader, 2, {leader: b"A", follower: b"B"}))
    assert sorted(_members(cluster)) == [("/127.0.0.1", None), ("/in-process", None)]

    later = _restarted(cluster, "crashed")
    assert _members(later) == [("/127.0.0.1", None)]
    # The remaining member takes over the partitions of the other.
    assert InProcess(later).call(heartbeat(leader, 2)).error_code == 27
    assert InProcess(later).call(join(leader)).generation_id == 3
    later.close()
