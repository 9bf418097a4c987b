"""The candidates for mutants: each kind of change, as an entry that fits the file."""

from __future__ import annotations

import textwrap
import tomllib
from pathlib import Path

import pytest

from tests.mutants import candidates, lists


def _changed(source: str, kind: str) -> list[str]:
    """Return the changed sources of one kind."""
    source = textwrap.dedent(source).lstrip("\n")
    finder = candidates.Finder(source)
    return [finder.changed(edit) for edit in finder.edits() if edit.kind == kind]


@pytest.mark.parametrize(
    ("kind", "source", "changed"),
    [
        ("drop", "def f(x):\n    x.a = 0  # anew\n    return x\n", ["def f(x):\n    return x\n"]),
        ("drop", "def f(x):\n    x.a()\n", ["def f(x):\n    pass\n"]),
        ("drop", "n = 1\nn += 1\n", ["n = 1\n"]),
        (
            "guard",
            "def f(x):\n    if x:\n        return 1\n    return 2\n",
            ["def f(x):\n    return 2\n"],
        ),
        (
            "swallow",
            "try:\n    f()\nexcept E:\n    raise\n",
            ["try:\n    f()\nexcept E:\n    pass\n"],
        ),
        ("swap", "a()\nb.c = 1\n", ["b.c = 1\na()\n"]),
        (
            "operand",
            "x = a and (b or c)\n",
            ["x = (b or c)\n", "x = a\n", "x = a and (c)\n", "x = a and (b)\n"],
        ),
        ("negate", "x = a or b\n", ["x = (not (a)) or b\n", "x = a or (not (b))\n"]),
        ("min", "x = min(a, b)\n", ["x = b\n", "x = a\n"]),
        ("max", "x = max(a, b, c)\n", ["x = max(b, c)\n", "x = max(a, c)\n", "x = max(a, b)\n"]),
        (
            "keyword",
            "x = sorted(a, key=f, reverse=True)\n",
            ["x = sorted(a, reverse=True)\n", "x = sorted(a, key=f)\n"],
        ),
        ("boundary", "x = a < b <= c\n", ["x = a <= b <= c\n", "x = a < b < c\n"]),
        ("number", "f(a == 7)\n", ["f(a == 8)\n"]),
        ("gate", "f(version >= 3)\n", ["f(version >= 4)\n", "f(version >= 2)\n"]),
        (
            "gate",
            "a: int = int32('1+', nullable='2-4')\n",
            [
                "a: int = int32(\"2+\", nullable='2-4')\n",
                "a: int = int32('1+', nullable=\"3-4\")\n",
            ],
        ),
        (
            "constant",
            "_MAX = 1 << 31\n",
            ["_MAX = 2 << 31\n", "_MAX = 0 << 31\n", "_MAX = 1 << 32\n", "_MAX = 1 << 30\n"],
        ),
    ],
)
def test_a_change_of_each_kind(kind: str, source: str, changed: list[str]) -> None:
    assert sorted(_changed(source, kind)) == sorted(changed)


def test_entries_have_the_context_that_makes_them_unique_and_fit(tmp_path: Path) -> None:
    source = "def f(x):\n    x.clear()\n    return 1\n\n\ndef g(x):\n    x.clear()\n    return 2\n"
    text = "\n".join(candidates.candidates("embedlog/f.py", source))
    entries = tomllib.loads(text)["mutant"]
    assert [entry["id"] for entry in entries] == ["embedlog-f-2-drop", "embedlog-f-7-drop"]
    assert entries[1]["change"] == " def g(x):\n-    x.clear()\n"
    (tmp_path / "embedlog").mkdir()
    (tmp_path / "embedlog/f.py").write_text(source)
    (tmp_path / "f.toml").write_text(text)
    for mutant in lists.read(tmp_path / "f.toml", "f"):
        assert lists.misfits(mutant, tmp_path) == []
