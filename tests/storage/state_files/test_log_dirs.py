"""`.embedlog_log_dirs`: the other directories of a broker."""

from __future__ import annotations

import pytest

from embedlog.errors import ConfigError
from embedlog.storage.state_files.log_dirs import (
    read_first,
    read_others,
    refuse_one_of_more,
    write_first,
    write_others,
)
from embedlog.testing import SimFiles

A, B = bytes([1]) * 16, bytes([2]) * 16
NOTE = "d/.embedlog_log_dirs"


@pytest.fixture
def files() -> SimFiles:
    made = SimFiles()
    made.make_directory("d")
    return made


def test_the_first_knows_the_others(files: SimFiles) -> None:
    others = {A: "/disk 2/x=y", B: "/disk3"}
    write_others(files, "d", others, sync=True)
    assert read_others(files, "d") == others
    assert read_first(files, "d") is None
    with pytest.raises(ConfigError, match="the others are /disk 2/x=y, /disk3"):
        refuse_one_of_more(files, "d")


def test_the_others_know_the_first(files: SimFiles) -> None:
    write_first(files, "d", "/data", sync=True)
    assert read_first(files, "d") == "/data"
    assert read_others(files, "d") == {}
    with pytest.raises(ConfigError, match="the first is /data"):
        refuse_one_of_more(files, "d")


def test_one_without_others_has_no_file(files: SimFiles) -> None:
    write_others(files, "d", {}, sync=True)
    assert files.list("d") == []
    write_others(files, "d", {A: "/disk2"}, sync=True)
    write_others(files, "d", {}, sync=True)
    assert files.list("d") == []
    assert read_others(files, "d") == {}
    assert read_first(files, "d") is None
    refuse_one_of_more(files, "d")


def test_what_is_as_it_was_is_not_written_again(files: SimFiles) -> None:
    write_others(files, "d", {A: "/disk2"}, sync=True)
    files.trace.clear()
    write_others(files, "d", {A: "/disk2"}, sync=True)
    assert {call for call, _ in files.trace} == {"stat", "read"}


@pytest.mark.parametrize("content", [b"", b"version=2\n", b"version=1\nnonsense /disk2\n"])
def test_a_file_that_cannot_be_understood_is_told(files: SimFiles, content: bytes) -> None:
    files.open(NOTE, create=True).write([content], 0)
    with pytest.raises(ConfigError, match=NOTE):
        read_others(files, "d")


def test_it_outlives_a_loss_of_power(files: SimFiles) -> None:
    files.sync_directory("")
    write_others(files, "d", {A: "/disk2"}, sync=True)
    from embedlog.runtime.randomness import seeded

    for image in files.crash_images(seeded(1), 10):
        assert read_others(image, "d") == {A: "/disk2"}
