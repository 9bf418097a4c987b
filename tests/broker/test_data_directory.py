"""Opening a directory: which ones, their permissions, and no change to foreign files."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.errors import ConfigError, EmbedlogError, KafkaStorageError
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, sim_runtime

UUID = "0123456789abcdef0123456789abcdef"
posix_only = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")


def _tree(path: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(path)): each.read_bytes()
        for each in sorted(path.rglob("*"))
        if each.is_file()
    }


# A foreign directory


@pytest.mark.parametrize("name", ["photo.jpg", ".bashrc", "src", "project-1"])
def test_a_directory_of_something_else_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    if "." in name:
        (tmp_path / "home" / name).write_text("mine")
    else:
        (tmp_path / "home" / name).mkdir()
        (tmp_path / "home" / name / "x.index").write_text("mine")
    before = _tree(tmp_path)
    with pytest.raises(ConfigError, match=f"it holds {name}.*make an empty file .lock"):
        embedlog.open(tmp_path / "home")
    assert _tree(tmp_path) == before
    (tmp_path / "home" / ".lock").touch()
    with embedlog.open(tmp_path / "home") as cluster:
        cluster.create_topic("events")
    assert before.items() <= _tree(tmp_path).items()


@pytest.mark.slow
def test_serving_in_such_a_directory_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = subprocess.run(
        [sys.executable, "-m", "embedlog", "serve", "--data", ".", "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(embedlog.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode
    assert "it holds notes.txt" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("names", [[], ["lost+found"], ["meta.properties"], ["t-0"]])
def test_an_empty_directory_and_a_brokers_are_opened(names: list[str], tmp_path: Path) -> None:
    for name in names:
        if name == "meta.properties":
            (tmp_path / name).write_text("version=1\nnode.id=1\n")
        elif name == "t-0":
            (tmp_path / name).mkdir()
            (tmp_path / name / f"{0:020d}.log").touch()
        else:
            (tmp_path / name).mkdir()
    with embedlog.open(tmp_path) as cluster:
        cluster.create_topic("events")
    with embedlog.open(tmp_path) as cluster:
        assert cluster.topics == ["events"]


# Files in our own directory


def _foreign(data: Path, outside: Path) -> None:
    (data / "photos-to-delete/2024").mkdir(parents=True)
    (data / "photos-to-delete/2024/a.jpg").write_text("precious")
    (data / f"t-x.{UUID}-delete").mkdir()
    (data / f"t-0.{UUID[:-1]}G-delete").mkdir()
    outside.mkdir()
    (outside / "keep.txt").write_text("outside")
    (data / f"linked-0.{UUID}-delete").symlink_to(outside)
    (data / "project-1").mkdir()
    (data / "project-1/notes.tmp").write_text("mine")
    (data / "project-1/x.index").write_text("mine")
    (data / "mounted-0").symlink_to(outside)


@posix_only
@pytest.mark.parametrize("is_clean", [True, False])
def test_only_our_own_deleted_logs_are_removed_and_no_link_is_followed(
    is_clean: bool, tmp_path: Path
) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    with embedlog.open(data) as cluster:
        cluster.create_topic("t")
    _foreign(data, outside)
    before = _tree(tmp_path / "data" / "photos-to-delete") | _tree(data / "project-1")
    doomed = data / f"old-0.{UUID}-delete"
    (doomed / "inner").mkdir(parents=True)
    (doomed / f"{0:020d}.log").write_text("old")
    (doomed / "link").symlink_to(outside)
    (doomed / "dangling").symlink_to(tmp_path / "nowhere")
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    with embedlog.open(data) as cluster:
        assert cluster.topics == ["t"]
    assert not doomed.exists()
    assert (outside / "keep.txt").read_text() == "outside"
    assert os.listdir(outside) == ["keep.txt"]
    assert (data / f"linked-0.{UUID}-delete").is_symlink()
    assert (data / f"t-x.{UUID}-delete").is_dir()
    assert (data / f"t-0.{UUID[:-1]}G-delete").is_dir()
    assert _tree(data / "photos-to-delete") | _tree(data / "project-1") == before


@posix_only
@pytest.mark.parametrize("name", ["project-0", "mounted-0"])
def test_a_topic_gets_no_log_where_something_else_is(name: str, tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    embedlog.open(data).close()
    outside.mkdir()
    if name == "project-0":
        (data / name).mkdir()
        (data / name / "notes.txt").write_text("mine")
    else:
        (data / name).symlink_to(outside)
    with embedlog.open(data) as cluster:
        topic = name.removesuffix("-0")
        cluster.create_topic(topic, 1)
        with pytest.raises(KafkaStorageError, match="and no (log|directory)"):
            cluster.broker().core.replica_manager.partition(topic, 0)
    assert os.listdir(outside) == []
    if name == "project-0":
        assert os.listdir(data / name) == ["notes.txt"]


# Permissions


@posix_only
def test_a_new_data_directory_is_for_its_user_only(tmp_path: Path) -> None:
    former = os.umask(0o022)
    try:
        embedlog.open(tmp_path / "above/data").close()
        embedlog.open(tmp_path / "shared", embedlog_data_dir_mode="0755").close()
        (tmp_path / "there").mkdir(mode=0o751)
        embedlog.open(tmp_path / "there").close()
    finally:
        os.umask(former)
    modes = {
        name: stat.S_IMODE((tmp_path / name).stat().st_mode)
        for name in ("above", "above/data", "shared", "there")
    }
    assert modes == {"above": 0o755, "above/data": 0o700, "shared": 0o755, "there": 0o751}
    with pytest.raises(ConfigError, match=r"embedlog\.data\.dir\.mode"):
        embedlog.open(tmp_path / "other", embedlog_data_dir_mode=0o755)


# Names that survive a loss of power


@pytest.mark.slow
@pytest.mark.parametrize("level", ["os", "fsync"])
@pytest.mark.parametrize("when", ["from the begin", "later"])
def test_a_topic_that_syncs_is_there_after_a_loss_of_power(level: str, when: str) -> None:
    runtime = sim_runtime()
    cluster = Cluster("above/data", runtime=runtime, durability=level)
    first = "fsync" if when == "from the begin" else "os"
    cluster.create_topic("t", 1, config={"embedlog.durability": first})
    if when == "later":
        cluster.broker().core.controller.alter_configs(
            2, "t", [(0, "embedlog.durability", "fsync")]
        )
    with cluster.producer() as producer:
        assert producer.send("t", b"acknowledged").result(10).offset == 0
    assert isinstance(runtime.files, SimFiles)
    for disk in runtime.files.crash_images(seeded(3), 200):
        try:
            after = Cluster("above/data", runtime=sim_runtime(files=disk), durability=level)
        except EmbedlogError as error:
            raise AssertionError("it cannot be opened") from error
        assert after.topics == ["t"]
        assert after.broker().core.replica_manager.partition("t", 0).log.log_end_offset == 1
