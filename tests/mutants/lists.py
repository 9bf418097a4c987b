"""The lists in `rooms/`: reading them, and finding entries that the code has left behind."""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import hunks

ROOT = Path(__file__).resolve().parents[2]
ROOMS = Path(__file__).parent / "rooms"
CODE = ("embedlog", "wire")


class BadList(ValueError):
    """A list, a room or an id is wrong; the text names it."""


@dataclass(frozen=True)
class Mutant:
    """One entry of a list; the package's docstring explains the fields."""

    room: str
    id: str
    file: str
    change: str
    breaks: str = ""
    tests: tuple[str, ...] = ()
    slow: bool = False
    equivalent: str = ""
    survives: str = ""

    def source(self, root: Path) -> str:
        """Return the text of the file with the mutant in it; raise BadHunk if it does not fit."""
        return hunks.apply(hunks.parse(self.change), (root / self.file).read_text())


def rooms() -> list[str]:
    """Return the names of all rooms that have a list."""
    return sorted(str(path.relative_to(ROOMS).with_suffix("")) for path in ROOMS.rglob("*.toml"))


def of_room(room: str) -> list[Mutant]:
    """Read the list of a room."""
    return read(ROOMS / f"{room}.toml", room)


def read(path: Path, room: str) -> list[Mutant]:
    """Read a list; raise BadList for an entry with an unknown or a missing key."""
    found = []
    try:
        entries = tomllib.loads(path.read_text())["mutant"]
        for entry in entries:
            entry["tests"] = tuple(entry.get("tests", ()))
            found.append(Mutant(room=room, **entry))
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise BadList(f"{path}, after {len(found)} good entries: {error}") from error
    return found


def chosen(names: Iterable[str]) -> list[Mutant]:
    """Return the mutants of these rooms (with all rooms below), ids and files; all without names.

    Equivalent mutants are left out unless named by id.
    """
    every = [mutant for room in rooms() for mutant in of_room(room)]
    found: dict[str, Mutant] = {}
    for name in names or [""]:
        if name.endswith(".toml"):
            taken = read(Path(name), Path(name).stem)
        else:
            taken = [
                mutant
                for mutant in every
                if mutant.id == name
                or (not mutant.equivalent and f"{mutant.room}/".startswith(name and f"{name}/"))
            ]
        if not taken and name:
            raise BadList(f"no room, mutant or file is named {name}; rooms: {', '.join(rooms())}")
        found.update((mutant.id, mutant) for mutant in taken)
    return list(found.values())


def problems(mutant: Mutant, root: Path = ROOT) -> list[str]:
    """Return the faults of an entry of `rooms/`, each as a sentence."""
    found = []
    place = f"{mutant.file.removesuffix('.py')}/"
    if not place.startswith((f"embedlog/{mutant.room}/", f"{mutant.room}/")):
        found.append(f"{mutant.file} is no file of the room")
    if not mutant.breaks.endswith("."):
        found.append("`breaks` is no sentence")
    return [f"{mutant.room}: {mutant.id}: {each}" for each in found] + misfits(mutant, root)


def misfits(mutant: Mutant, root: Path = ROOT) -> list[str]:
    """Return each misfit to the code and the tests, as a sentence."""
    missing = [name for name in mutant.tests if not (root / name.partition("::")[0]).exists()]
    found = [f"there is no {name}" for name in missing]
    try:
        path = root / mutant.file
        before, after = hunks.around(hunks.parse(mutant.change), path.read_text(), _starts(path))
        tree = ast.parse(after)
    except (OSError, hunks.BadHunk) as error:
        found.append(f"{error}{_elsewhere(mutant, root)}")
    except SyntaxError as error:
        found.append(f"{mutant.file} is no Python with it: {error}")
    else:
        if not hunks.differ(ast.parse(before), tree):
            found.append("it changes nothing but the formatting")
    return [f"{mutant.room}: {mutant.id}: {each}" for each in found]


@functools.cache
def _starts(path: Path) -> list[int]:
    """Return the lines, from 0, at which statements of a file and of its classes begin.

    The first statement of a class is left out, because a class is no Python without it.
    """
    top = ast.parse(path.read_text()).body
    inner = [each for node in top if isinstance(node, ast.ClassDef) for each in node.body[1:]]
    return [
        min(each.lineno for each in (node, *getattr(node, "decorator_list", ()))) - 1
        for node in (*top, *inner)
    ]


def _elsewhere(mutant: Mutant, root: Path) -> str:
    """Name the files to which the code of a mutant may have moved."""
    try:
        before = hunks.parse(mutant.change).before
    except hunks.BadHunk:
        return ""
    found = [
        str(path.relative_to(root))
        for top in CODE
        for path in sorted((root / top).rglob("*.py"))
        if hunks.places(before, path.read_text().split("\n"))
    ]
    return f"; they occur in {', '.join(found)}" if found else ""
