"""Paths of data directories, and values that are no paths."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.storage.directory.data_path import data_directory


def test_memory_is_spelled_as_in_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with embedlog.open(":memory:") as cluster, cluster.producer() as producer:
        assert producer.send("events", b"v").result().offset == 0
        assert cluster.path is None
        assert cluster.durability == "memory"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("make", [str, Path])
def test_a_tilde_is_the_home_directory(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with embedlog.open(make("~/data")) as cluster:
        assert cluster.path == str(tmp_path / "home" / "data")
    assert os.listdir(tmp_path) == ["home"]
    assert data_directory("~") == str(tmp_path / "home")
    assert data_directory("./~/data") == "./~/data"


@pytest.mark.parametrize(
    "text",
    [
        "localhost:9092",
        ":9092",
        "127.0.0.1:9092",
        "[::1]:9092",
        "a:9092,b:9092",
        "PLAINTEXT://localhost:9092",
    ],
)
def test_an_address_is_refused_and_makes_no_directory(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(embedlog.ConfigError, match=r"is an address.*embedlog\.Producer"):
        embedlog.open(text)
    assert not os.listdir(tmp_path)


def test_a_directory_with_the_name_of_an_address_can_be_spelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    embedlog.open("./localhost:9092").close()
    embedlog.open(Path("a:1")).close()
    assert sorted(os.listdir(tmp_path)) == ["a:1", "localhost:9092"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (9092, r"9092 is a number, and not a path.*cluster.listen\(port=9092\)"),
        (b"data", "b'data' is not a path: expected text"),
        (True, "True is not a path"),
        ({"num.partitions": 3}, "settings are given as config="),
        ("", "the path is empty"),
        (Path("").joinpath, "is not a path"),
    ],
)
def test_what_is_no_path_is_refused_by_name(given: Any, said: str) -> None:
    with pytest.raises(embedlog.ConfigError, match=said):
        embedlog.open(given)
