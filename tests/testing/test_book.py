"""The book of the test kit: its pages quote the recipes, its blocks run, its tables are true."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from embedlog.testing import Kafka, KafkaContainer, Proxy, SimulatedKafka
from tests.support import book
from tests.testing.plugin.conftest import Project, _loaded, project  # noqa: F401  # fixtures

ROOT = book.ROOT
PAGES = [ROOT / "docs/testing.md", book.PAGES / "tour.md", book.PAGES / "coming-from.md"]
RECIPES_MIN = 60


def _names(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", book.pages(), ids=_names)
def test_a_generated_page_is_up_to_date(path: Path) -> None:
    assert path.read_text() == book.pages()[path], "run python -m tests.support.book"


def test_every_file_of_recipes_has_a_page_and_there_are_enough() -> None:
    files = {path.stem.removeprefix("test_") for path in book.RECIPES.glob("test_*.py")}
    assert files == set(book.THEMES)
    headings = [name for theme in book.THEMES for name, _, _ in book.recipes(theme)]
    assert len(headings) == len(set(headings)) >= RECIPES_MIN
    written = {path.name for path in book.PAGES.glob("recipes*.md")}
    assert written == {"recipes.md", *(f"recipes-{theme}.md" for theme in book.THEMES)}


def test_the_named_calls_exist() -> None:
    """Calls such as `kafka.topic(...)` in the book are attributes of the kit's objects."""
    kinds = {"kafka": SimulatedKafka, "proxy": Proxy, "container": KafkaContainer}
    with Kafka() as kafka:
        for path in [*PAGES, book.SUPPORT]:
            text = path.read_text()
            for owner, name in re.findall(r"\b(kafka|proxy|container)\.(\w+)", text):
                found = hasattr(kinds[owner], name) or hasattr(kafka, name)
                assert found or f"{owner}.{name}" == "testcontainers.kafka", f"{path}: {name}"


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=_names)
def test_the_blocks_run_in_a_project(project: Project, path: Path) -> None:  # noqa: F811
    blocks = re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
    if not blocks:
        assert path.name == "coming-from.md"  # it has tables only
        return
    for number, block in enumerate(blocks):
        if "def test_" not in block:
            block = "def test_block():\n" + textwrap.indent(block, "    ")
        project.write(**{f"test_block_{number}": block})
    found = project.run(None, in_process=False)
    outcomes = found.parseoutcomes()
    assert set(outcomes) <= {"passed", "warnings"}, outcomes
    assert outcomes["passed"] >= len(blocks)


@pytest.mark.interop
@pytest.mark.slow
def test_the_test_in_the_readme_runs(project: Project) -> None:  # noqa: F811
    readme = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"^```python\n(from confluent.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    project.run(block, in_process=False).assert_outcomes(passed=1)
