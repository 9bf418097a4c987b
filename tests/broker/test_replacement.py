"""Replaced segments, handed to the owner of a directory or committed by the job itself."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import embedlog
from embedlog.common import TopicPartition
from embedlog.errors import KafkaStorageError
from embedlog.runtime import real_runtime
from embedlog.runtime.randomness import seeded
from embedlog.spark.committer import commit
from embedlog.storage.staging.manifest import Replacement
from embedlog.storage.staging.rewriting import Rewriter, RewriteRules, SegmentWriter
from embedlog.storage.verification.directory import DirectoryCheck
from tests.support.commits import expect_commits
from wire.records.format import Codec

FILES = real_runtime().files
ZERO = TopicPartition("t", 0)


def _fill(cluster: embedlog.Cluster, count: int) -> None:
    with cluster.producer(linger_ms=0, enable_idempotence=False) as producer:
        for number in range(count):
            producer.send("t", b"v" * 300, key=b"k%d" % (number % 3), partition=0).result()


def _values(path: str) -> list[tuple[int, bytes | None]]:
    with embedlog.open_reader(path) as reader:
        return [(record.offset, record.key) for record in reader.partition("t", 0).records()]


def _bases(path: str) -> list[int]:
    with embedlog.open_reader(path) as reader:
        return [base for base, _ in reader.partition("t", 0).segment_paths()]


def rewritten(path: str, id: str) -> Replacement:
    writer = SegmentWriter(FILES, path, ZERO, job=id, writer="w")
    rewriter = Rewriter(RewriteRules(erased=[b"k1"], codec=Codec.GZIP))
    made = [writer.write(base, rewriter) for base in _bases(path)[:-1]]
    return Replacement(id, ZERO, [each.file for each in made if each.file is not None])


@pytest.mark.parametrize("is_owned", [True, False])
def test_segments_are_swapped_in_and_readers_see_them(tmp_path: Path, is_owned: bool) -> None:
    path = str(tmp_path / "data")
    with embedlog.open(path) as cluster:
        cluster.create_topic("t", 1, config={"segment.bytes": str(1 << 20)})
    expect_commits(path)
    with embedlog.open(path, background=True) as cluster:
        _fill(cluster, 9)
        commit(path, Replacement("roll", ZERO, is_roll=True))
        _fill(cluster, 2)
        if is_owned:
            commit(path, rewritten(path, "job"))
    if not is_owned:
        commit(path, rewritten(path, "job"))
    expected = [(n, b"k%d" % (n % 3)) for n in range(9) if n % 3 != 1]
    expected += [(9, b"k0"), (10, b"k1")]
    assert _values(path) == expected
    with embedlog.open(path) as cluster, cluster.consumer() as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        found = []
        while len(found) < len(expected):
            found += [(record.offset, record.key) for record in consumer.poll(1000)]
        assert found == expected


def test_refusals_say_why(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    with embedlog.open(path) as cluster:
        cluster.create_topic("t", 1)
        _fill(cluster, 3)
    commit(path, Replacement("roll", ZERO, is_roll=True))
    first, second = rewritten(path, "first"), rewritten(path, "second")
    commit(path, first)
    with pytest.raises(KafkaStorageError, match="run the job again"):
        commit(path, second)


_PROGRAM = """
import sys
from tests.broker.test_replacement import commit, rewritten
path, id = sys.argv[1:]
print("ready", flush=True)
commit(path, rewritten(path, id))
print("done", flush=True)
"""


@pytest.mark.slow
def test_a_process_killed_at_any_time_leaves_each_record_or_erases_it(tmp_path: Path) -> None:
    """SIGKILL at a random moment, from the first read batch to the answer.

    The duration of a commit depends on the machine, so the moments adapt to it.
    """
    random, root = seeded(23), Path(__file__).resolve().parents[2]
    left, done, within_ms = [], 0, 220
    for trial in range(24):
        path = str(tmp_path / f"data-{trial}")
        with embedlog.open(path, background=True, durability="os") as cluster:
            cluster.create_topic("t", 1)
            for number in range(6):
                _fill(cluster, 9)
                commit(path, Replacement(f"roll-{number}", ZERO, is_roll=True))
        before = _values(path)
        expected = [row for row in before if row[1] != b"k1"]
        child = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, path, "job"], cwd=root, stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        with suppress(subprocess.TimeoutExpired):
            child.wait(random.below(within_ms) / 1000)
        child.kill()
        is_done = b"done" in child.communicate()[0]
        done += is_done
        found = _values(path)
        assert [row for row in found if row[1] != b"k1"] == expected
        assert set(found) <= set(before)
        left.append(len(found) - len(expected))
        within_ms = within_ms * 4 // 5 if is_done or not left[-1] else within_ms * 5 // 4
        for id in ("again", "once-more"):
            replacement = rewritten(path, id)
            if replacement.files:
                with suppress(KafkaStorageError):  # the first manifest is taken first
                    commit(path, replacement)
        assert _values(path) == expected
        assert not list(DirectoryCheck(FILES, path, lambda _: None).findings())
    assert left.count(18) > 0, left
    assert done or left.count(0), left
