"""The code of the documents runs, in the order of each document, and their links exist."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.queue.arguments import PutArguments, QueueArguments
from tests.benchmarks import calls

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
RUN = ("queue.md", "testing/brokers.md", "operation.md")
"""Documents whose blocks run one after the other. Spark's documents have their
own test, and so has the book of the test kit."""

_LINK = re.compile(r"\]\(([^)#:]+)[^):]*\)")
_PLACE = re.compile(r"`((?:tests|examples|embedlog|wire|docs)/[\w/.]+)`")


def _blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


def _names(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _is_there(place: str) -> bool:
    """Accept a module with or without its suffix."""
    return (ROOT / place).exists() or (ROOT / f"{place}.py").exists()


@pytest.mark.parametrize("path", DOCUMENTS, ids=_names)
def test_links_and_named_files_exist(path: Path) -> None:
    text = path.read_text()
    missing = [link for link in _LINK.findall(text) if not (path.parent / link).exists()]
    if path.name != "CHANGELOG.md":  # it names former files
        missing += [place for place in _PLACE.findall(text) if not _is_there(place)]
    assert not missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=_names)
def test_blocks_of_python_compile(path: Path) -> None:
    for block in _blocks(path):
        compile(block, str(path), "exec")


@pytest.mark.parametrize("name", RUN)
def test_the_blocks_of_a_document_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = _blocks(ROOT / "docs" / name)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), names)


def test_the_first_block_of_the_readme_runs_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (queue, *_) = _blocks(ROOT / "README.md")
    for first in (0, 2):
        exec(compile(queue, "README.md", "exec"), {})
        told = capsys.readouterr().out.splitlines()
        # The group continues at its committed offset.
        assert told == [f"{first} b'key' b'value'", f"{first + 1} None b'another'"]


def test_the_job_queue_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (jobs,) = [block for block in _blocks(ROOT / "README.md") if "cluster.queue" in block]
    exec(compile(jobs, "README.md", "exec"), {"embedlog": embedlog})
    assert capsys.readouterr().out == "a@example.com\n"


def test_every_setting_of_embedlog_is_in_the_documents() -> None:
    folder = ROOT / "embedlog/config/tables"
    tables = "".join(path.read_text() for path in folder.glob("*.py"))
    found = re.findall(r"^(embedlog\.[\w.]+) \w+ (\S+)", tables, re.MULTILINE)
    text = (ROOT / "docs/operation.md").read_text()
    rows = dict(re.findall(r"^\| `(embedlog\.[\w.]+)` \| ([^|]+) \|", text, re.MULTILINE))
    assert rows.keys() == {name for name, _default in found}
    wrong = {
        name: (default, rows[name])
        for name, default in found
        if default != "null" and not rows[name].startswith(default)
    }
    assert not wrong


def test_every_option_of_a_queue_is_in_the_documents() -> None:
    text = (ROOT / "docs/queue.md").read_text()
    tables = re.findall(r"^\| option of `[\w.]+` .*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    queue, put = [[row.split(" | ")[:2] for row in table.splitlines()] for table in tables]
    defaults = {name.strip("| `"): default for name, default in queue}
    parameters = inspect.signature(embedlog.Queue).parameters
    assert defaults == {
        name: str(each.default)
        for name, each in parameters.items()
        if name in QueueArguments.__annotations__
    } | {"lock": "30"}
    assert {
        name for names, _ in put for name in re.findall(r"`(\w+)`", names)
    } == PutArguments.__annotations__.keys()


def test_the_changelog_has_the_version_and_a_place_for_the_next_one() -> None:
    versions = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[:2] == ["Unreleased", embedlog.__version__]


def test_the_reading_order_is_the_trace_of_an_append() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `((?:embedlog|wire)/\S+\.py)` \| `(\S+)` \|", text, re.MULTILINE)
    with embedlog.open() as cluster:
        traced = calls.measured(calls.trips(cluster)["append()"]).calls
    # The tests' locks check their order; production locks have no such calls.
    traced = [each for each in traced if "runtime/lock" not in each]
    assert [each.rpartition("wire/")[2] for each in traced] == [
        f"{path.removeprefix('embedlog/').removeprefix('wire/')} {name}" for path, name in rows
    ]
