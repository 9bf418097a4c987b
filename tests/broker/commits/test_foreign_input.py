"""Manifests, pins and staged files of other processes are input: any bytes, any names, any kind.

A wrong one is answered or set aside, `health` names it, and nothing else is touched or stopped.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import embedlog
from embedlog.errors import CorruptRecord
from embedlog.runtime import real_runtime
from embedlog.storage.degradation import QUARANTINED
from embedlog.storage.staging import exchange
from embedlog.storage.staging.exchange import REFUSED
from embedlog.storage.state_files import staged_layout
from embedlog.storage.state_files.archived_offsets import read_archived
from embedlog.storage.state_files.sealed_file import write_sealed
from tests.support.sizes import examples
from tests.support.snapshots import snapshot
from wire.records import build_batch

ID = "a" * 32
FILE = {"topic": "t", "partition": 0, "path": "job/f", "size": 10, "count": 1}
MANIFEST = {"id": ID, "application": "", "version": 0, "files": [FILE]}
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")


class Place:
    """A cluster in a directory, a file outside of it, and another job's staged file."""

    def __init__(self, base: Path) -> None:
        self.files = real_runtime().files
        self.data = base / "data"
        self.outside = base / "outside"
        self.outside.mkdir()
        (self.outside / "secret").write_bytes(self.batch())
        self.cluster = embedlog.open(self.data, durability="os")
        self.cluster.create_topic("t", 1)
        self.stage("other", "g")
        self.before = snapshot(self.outside)
        self.count = 0

    @staticmethod
    def batch() -> bytes:
        return bytes(build_batch([b"v"], timestamps=1, base_offset=0))

    def part(self, name: str) -> Path:
        found = self.data / ".exchange" / name
        found.mkdir(parents=True, exist_ok=True)
        return found

    def stage(self, job: str, name: str) -> int:
        (self.part("staged") / job).mkdir(exist_ok=True)
        return (self.part("staged") / job / name).write_bytes(self.batch())

    def leave(self, content: bytes, id: str = ID) -> None:
        self.part("inbox")
        path = str(self.data / ".exchange/inbox" / id)
        write_sealed(self.files, path, content, sync=False)

    def goes_on(self) -> None:
        """Check that the bad manifest is gone, and that commits and other work go on."""
        self.cluster.adopt_staged()
        assert not staged_layout.has_manifests(self.files, str(self.data))
        self.count += 1
        good = f"{self.count:032x}"
        size = self.stage("good", "f")
        file = {**FILE, "path": "good/f", "size": size}
        self.leave(json.dumps({**MANIFEST, "id": good, "files": [file]}).encode(), good)
        self.cluster.adopt_staged()
        answer = exchange.read_answer(self.files, str(self.data), good)
        assert answer is not None
        answer.check()
        self.cluster.maintain()
        with self.cluster.producer() as producer:
            producer.append("t", b"x")
        assert snapshot(self.outside) == self.before
        assert (self.data / ".exchange/staged/other/g").exists()
        for each in self.part("answers").iterdir():
            each.unlink() if each.is_file() else each.rmdir()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("input"))
    yield place
    place.cluster.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.cluster.close()


FUZZ = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["..", "../x", "/etc/passwd", "./f", "job/../x", "a\0b", "\ud800/x", "t", ID])
)
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
NEAR_FILE = st.fixed_dictionaries({key: ANY_JSON | st.just(value) for key, value in FILE.items()})
NEAR = st.fixed_dictionaries(
    {
        "id": ANY_JSON | st.just(ID),
        "application": ANY_JSON | st.just(""),
        "version": ANY_JSON | st.just(0),
        "files": ANY_JSON | st.lists(NEAR_FILE, max_size=2),
    },
    optional={
        "kind": st.just("replace") | ANY_JSON,
        "topic": ANY_JSON | st.just("t"),
        "partition": ANY_JSON | st.just(0),
        "topic_id": ANY_JSON,
        "roll": ANY_JSON,
    },
)


@pytest.mark.slow
@FUZZ
@given(found=ANY_JSON | NEAR)
def test_any_json_is_refused_or_committed(found: object, shared: Place) -> None:
    shared.leave(json.dumps(found).encode())
    shared.goes_on()


@pytest.mark.slow
@FUZZ
@given(content=st.binary(), is_sealed=st.booleans())
def test_any_bytes_are_refused(content: bytes, is_sealed: bool, shared: Place) -> None:
    if is_sealed:
        shared.leave(content)
    else:
        (shared.part("inbox") / ID).write_bytes(content)
    shared.goes_on()


@pytest.mark.slow
@FUZZ
@given(found=ANY_JSON | st.fixed_dictionaries({"expires_ms": ANY_JSON, "offsets": ANY_JSON}))
def test_any_pin_pins_or_is_set_aside(found: object, shared: Place) -> None:
    content = json.dumps(found).encode()
    write_sealed(shared.files, str(shared.part("pins") / ID), content, sync=False)
    shared.goes_on()


@pytest.mark.slow
@FUZZ
@given(found=ANY_JSON | st.fixed_dictionaries({"offsets": ANY_JSON}))
def test_any_archive_is_read_or_damaged(found: object, shared: Place) -> None:
    path = shared.data / "embedlog-archived-x"
    write_sealed(shared.files, str(path), json.dumps(found).encode(), sync=False)
    assert isinstance(read_archived(shared.files, str(shared.data)), dict)
    path.unlink()


@pytest.mark.slow
@FUZZ
@given(
    found=ANY_JSON
    | st.fixed_dictionaries(
        dict.fromkeys(("state", "ranges", "code", "message"), ANY_JSON),
    )
)
def test_any_answer_is_read_or_damaged(found: object, shared: Place) -> None:
    path = shared.part("answers") / ID
    write_sealed(shared.files, str(path), json.dumps(found).encode(), sync=False)
    with suppress(CorruptRecord):
        exchange.read_answer(shared.files, str(shared.data), ID)
    path.unlink()


def refused(place: Place) -> str:
    place.cluster.adopt_staged()
    answer = exchange.read_answer(place.files, str(place.data), ID)
    assert answer is not None
    assert answer.state == REFUSED
    return answer.message


@pytest.mark.parametrize(
    "path", ["./f", "f", "job//f", "job/./f", "../x/f", "job/\0f", "/job/f", "job/\ud800", "job/"]
)
def test_a_path_that_leaves_the_directory_of_its_job_is_refused(path: str, place: Place) -> None:
    size = place.stage("job", "f")
    place.part("staged").joinpath("f").write_bytes(place.batch())
    place.leave(json.dumps({**MANIFEST, "files": [{**FILE, "path": path, "size": size}]}).encode())
    assert "no manifest" in refused(place)
    assert [(each.kind, each.subject) for each in place.cluster.health()] == [
        (QUARANTINED, str(place.data))
    ]
    place.goes_on()


@pytest.mark.parametrize("size", ["Infinity", "NaN", "1e400", "true", "-1", '"10"', "[" * 100_000])
def test_strange_numbers_are_refused(size: str, place: Place) -> None:
    text = json.dumps({**MANIFEST, "files": [{**FILE, "size": 0}]}).replace(
        '"size": 0', f'"size": {size}'
    )
    place.leave(text.encode())
    refused(place)
    place.goes_on()


def linked(place: Place) -> None:
    (place.part("staged") / "job").mkdir()
    (place.part("staged") / "job/f").symlink_to(place.outside / "secret")


def linked_job(place: Place) -> None:
    (place.outside / "f").write_bytes(place.batch())
    (place.part("staged") / "job").symlink_to(place.outside)
    place.before = snapshot(place.outside)


def linked_staging(place: Place) -> None:
    (place.outside / "job").mkdir()
    (place.outside / "job/f").write_bytes(place.batch())
    place.part("staged").rename(place.data / "kept")
    (place.data / ".exchange/staged").symlink_to(place.outside)
    place.before = snapshot(place.outside)


def pipe(place: Place) -> None:
    (place.part("staged") / "job").mkdir()
    os.mkfifo(place.part("staged") / "job/f")


def directory(place: Place) -> None:
    (place.part("staged") / "job/f").mkdir(parents=True)


def huge(place: Place) -> None:
    (place.part("staged") / "job").mkdir()
    with open(place.part("staged") / "job/f", "wb") as file:
        file.truncate(1 << 40)


@posix_only
@pytest.mark.parametrize("prepare", [linked, linked_job, linked_staging, pipe, directory, huge])
def test_a_staged_file_must_be_a_plain_file_of_its_job(
    prepare: Callable[[Place], None], place: Place
) -> None:
    prepare(place)
    size = 1 << 40 if prepare is huge else len(place.batch())
    place.leave(json.dumps({**MANIFEST, "files": [{**FILE, "size": size}]}).encode())
    refused(place)
    if prepare is linked_staging:
        assert snapshot(place.outside) == place.before
        (place.data / ".exchange/staged").unlink()
        (place.data / "kept").rename(place.data / ".exchange/staged")
    place.goes_on()


@posix_only
def test_a_file_with_a_second_name_does_not_become_a_segment(place: Place) -> None:
    size = place.stage("job", "f")
    os.link(place.part("staged") / "job/f", place.outside / "second")
    place.before = snapshot(place.outside)
    place.leave(json.dumps({**MANIFEST, "files": [{**FILE, "size": size}]}).encode())
    place.cluster.adopt_staged()
    place.goes_on()


@posix_only
@pytest.mark.parametrize("part", ["inbox", "pins"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "link", "directory", "dangling", "huge"])
def test_no_kind_of_file_stops_the_owner(
    part: str, kind: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.part(part) / ID
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        monkeypatch.chdir(path.parent)  # the whole path is longer than a socket's may be
        with socket.socket(socket.AF_UNIX) as each:
            each.bind(ID)
    elif kind == "directory":
        (path / "inner").mkdir(parents=True)
    elif kind == "huge":
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    else:
        path.symlink_to(place.outside / ("secret" if kind == "link" else "nowhere"))
    place.goes_on()
    assert [(each.kind, each.subject) for each in place.cluster.health()] == [
        (QUARANTINED, str(place.data))
    ]
    assert part in place.cluster.health()[0].reason or "taken" in place.cluster.health()[0].reason


@posix_only
@pytest.mark.parametrize("part", ["taken", "answers"])
def test_names_that_are_taken_by_directories_stop_nothing(part: str, place: Place) -> None:
    (place.part(part) / ID / "inner").mkdir(parents=True)
    place.leave(b"[]")
    place.cluster.adopt_staged()
    assert not staged_layout.has_manifests(place.files, str(place.data))


def test_a_hundred_refused_manifests_are_kept_and_removed_after_a_week(place: Place) -> None:
    for number in range(120):
        place.leave(b"[]", f"{number:032x}")
    place.cluster.adopt_staged()
    found = list(place.part("refused").iterdir())
    assert len(found) == 100
    for each in found:
        os.utime(each, (1, 1))
    old = exchange.sweep(place.files, str(place.data), real_runtime().clock.wall_ms())
    assert set(map(str, found)) <= set(old)


def test_a_table_deletes_no_file_outside(tmp_path: Path) -> None:
    import zlib

    from embedlog.spark.pipeline.tables.manifest import ManifestTable
    from embedlog.spark.pipeline.tables.table import CommitKey

    (tmp_path / "table/_log").mkdir(parents=True)
    (tmp_path / "table/data").mkdir()
    (tmp_path / "table/data/old").write_text("x")
    (tmp_path / "else").mkdir()
    (tmp_path / "else/victim").write_text("x")
    (tmp_path / "table/link").symlink_to(tmp_path / "else")
    names = ["../else/victim", f"{tmp_path}/else/victim", "link/victim", "data/../../else/victim"]

    def commit(version: int, **more: object) -> None:
        found = {"version": version, "time_ms": 0, "app": f"a{version}", "app_version": 1}
        line = json.dumps(found | {"add": [], "remove": [], "properties": {}} | more).encode()
        name = f"{version:020d}.json"
        (tmp_path / "table/_log" / name).write_bytes(b"%s\n%08x\n" % (line, zlib.crc32(line)))

    added = {"rows": 1, "bytes": 1, "part": "rows", "partition": []}
    commit(0, add=[{"path": each, **added} for each in [*names, "data/old"]])
    commit(1, remove=[*names, "data/old"])
    assert ManifestTable(str(tmp_path / "table")).commit(CommitKey("x", 1), [])
    assert (tmp_path / "else/victim").exists()
    assert not (tmp_path / "table/data/old").exists()
