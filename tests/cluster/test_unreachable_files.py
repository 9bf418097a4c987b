"""Files that cannot be opened: the owner and readers say so at once, and other logs go on.

The programs run in processes that may not pass over permissions, even if the tests run as root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import embedlog
from embedlog.errors import KafkaStorageError
from embedlog.storage.degradation import UNREACHABLE

WITHOUT_RIGHTS = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", "--"]
    if hasattr(os, "geteuid") and os.geteuid() == 0
    else []
)
needs_rights = pytest.mark.skipif(
    sys.platform == "win32" or bool(WITHOUT_RIGHTS and not shutil.which("setpriv")),
    reason="permissions cannot be taken away",
)

PROGRAM = """
import json, logging, sys, warnings
import embedlog
warnings.simplefilter("error", ResourceWarning)
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("embedlog").addHandler(handler)
found = {}
def attempt(name, call):
    try:
        found[name] = call()
    except embedlog.EmbedlogError as error:
        found[name] = f"{type(error).__name__}: {error}"
def read(cluster, topic):
    with cluster.consumer() as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        count = 0
        while count < 10:
            count += len(list(consumer.poll(2000)))
        return count
def append(cluster, topic):
    with cluster.producer() as producer:
        producer.append(topic, b"x")
        return "appended"
def foreign(path, topic):
    with embedlog.open_reader(path) as reader:
        return len(list(reader.partition(topic, 0).records(0)))
cluster = embedlog.open(sys.argv[1])
found["said"] = said.copy()
found["health"] = [[each.kind, each.subject] for each in cluster.health()]
for topic in ("t", "other"):
    attempt(f"{topic} poll", lambda: read(cluster, topic))
    attempt(f"{topic} append", lambda: append(cluster, topic))
    attempt(f"{topic} reader", lambda: foreign(sys.argv[1], topic))
found["health after"] = [[each.kind, each.subject] for each in cluster.health()]
attempt("close", cluster.close)
print(json.dumps(found))
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        for topic in ("t", "other"):
            cluster.create_topic(topic, 1)
        with cluster.producer(enable_idempotence=True) as producer:
            for number in range(10):
                producer.send("t", b"%d" % number)
                producer.send("other", b"%d" % number)
    return tmp_path / "data"


def run(data: Path) -> dict[str, object]:
    done = subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-c", PROGRAM, str(data)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    assert (found["other poll"], found["other append"]) == (10, "appended")
    assert found["other reader"] == 11
    return found


def also_slow(*more: object) -> object:
    return pytest.param(*more, marks=pytest.mark.slow)


@pytest.mark.slow
@needs_rights
@pytest.mark.parametrize(
    ("what", "is_clean"),
    [
        ("", True),
        also_slow("", False),
        also_slow("00000000000000000000.log", True),
        ("00000000000000000000.log", False),
    ],
)
def test_a_log_that_cannot_be_opened_is_named_at_once(
    what: str, is_clean: bool, data: Path
) -> None:
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    place = data / "t-0" / what
    place.chmod(0)
    try:
        found = run(data)
    finally:
        place.chmod(0o700)
    assert found["health"] == found["health after"] == [[UNREACHABLE, "t-0"]]
    said = str(found["said"])
    assert said.count("t-0 cannot be served") == 1
    for call in ("poll", "append", "reader"):
        said = str(found[f"t {call}"])
        assert said.startswith("KafkaStorageError"), said
        assert "Permission denied" in said
        assert "t-0" in said
    with embedlog.open(data) as cluster, cluster.consumer() as consumer:  # nothing was lost
        assert cluster.health() == []
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        assert len(list(consumer.poll(5000))) == 10


@pytest.mark.slow
@needs_rights
@pytest.mark.parametrize(
    ("suffix", "is_clean"),
    [
        (".index", False),
        also_slow(".index", True),
        also_slow(".timeindex", False),
        (".timeindex", True),
        (".snapshot", False),
        also_slow(".snapshot", True),
        also_slow("metadata", False),
        ("metadata", True),
        ("checkpoint", False),
        also_slow("checkpoint", True),
    ],
)
def test_a_small_file_that_cannot_be_opened_hides_no_record(
    suffix: str, is_clean: bool, data: Path
) -> None:
    """Either the log is served as a whole, or the calls and `health` say that it is not."""
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    for file in (data / "t-0").iterdir():
        if file.name.endswith(suffix):
            file.chmod(0)
    found = run(data)
    if found["t poll"] == 10:
        assert found["t reader"] in (10, 11) or "KafkaStorageError" in str(found["t reader"])
    else:
        assert str(found["t poll"]).startswith("KafkaStorageError"), found
        assert [UNREACHABLE, "t-0"] in found["health after"]  # type: ignore[operator]


def test_a_link_to_a_log_is_followed_and_removed_alone(data: Path, tmp_path: Path) -> None:
    (data / "t-0").rename(tmp_path / "t-0")
    (data / "t-0").symlink_to(tmp_path / "t-0")
    for _ in range(2):
        with embedlog.open(data, durability="os") as cluster:
            assert cluster.health() == []
            with cluster.producer() as producer:
                producer.append("t", b"x")
            with cluster.consumer() as consumer:
                consumer.assign([("t", 0)])
                consumer.seek_to_beginning()
                count = len(list(consumer.poll(5000)))
    assert count == 12
    with embedlog.open_reader(data) as reader:
        assert reader.partition("t", 0).high_watermark == 12
    with embedlog.open(data, durability="os") as cluster, cluster.admin() as admin:
        admin.delete_topics(["t"]).check()
    assert not [each for each in data.iterdir() if each.name.startswith("t-0")]
    assert (tmp_path / "t-0/00000000000000000000.log").exists()


@pytest.mark.parametrize("target", ["nowhere", "foreign", "empty", "file"])
def test_a_link_to_no_log_is_refused_aloud(target: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/notes").write_text("of others")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no directory")
    shutil.rmtree(data / "t-0")
    (data / "t-0").symlink_to(tmp_path / target)
    with embedlog.open(data, durability="os") as cluster:
        assert [(each.kind, each.subject) for each in cluster.health()] == [(UNREACHABLE, "t-0")]
        with cluster.consumer() as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            with pytest.raises(KafkaStorageError, match="t-0"):
                consumer.poll(5000)
        with cluster.producer() as producer, pytest.raises(KafkaStorageError, match="t-0"):
            producer.append("t", b"x")
            producer.flush()
    assert (data / "t-0").is_symlink()
    assert sorted(each.name for each in (tmp_path / "foreign").iterdir()) == ["notes"]
    assert not any((tmp_path / "empty").iterdir())


def test_several_brokers_say_it_too(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", brokers=2, durability="os") as cluster:
        cluster.create_topic("t", 1, replication_factor=1)
        with cluster.producer() as producer:
            producer.append("t", b"x")
    (found,) = (tmp_path / "data").glob("broker-*/t-0")
    shutil.rmtree(found)
    found.symlink_to(tmp_path / "nowhere")
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        assert [(each.kind, each.subject) for each in cluster.health()] == [(UNREACHABLE, "t-0")]
        with cluster.consumer() as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            with pytest.raises(KafkaStorageError, match="t-0"):
                consumer.poll(5000)
