"""The lists of mutants fit the code of today, and a list that does not is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.mutants import hunks, lists
from tests.mutants.lists import BadList, Mutant

CODE = """\
def first(items, end):
    if items:
        return min(items[0], end)

    return end


class Other:
    def first(self, items, end):
        return min(items[0], end)
"""


@pytest.mark.parametrize("room", lists.rooms())
def test_each_mutant_fits_its_file_once_and_changes_its_syntax_tree(room: str) -> None:
    assert not [each for mutant in lists.of_room(room) for each in lists.problems(mutant)]


def test_ids_are_unique() -> None:
    names = Counter(mutant.id for room in lists.rooms() for mutant in lists.of_room(room))
    assert not [name for name, count in names.items() if count > 1]


def test_a_hunk_is_found_at_any_indentation() -> None:
    hunk = hunks.parse(" if items:\n-    return min(items[0], end)\n+    return items[0]\n \n")
    assert "    if items:\n        return items[0]\n\n    return end\n" in hunks.apply(hunk, CODE)


def test_lines_only_of_context_stay() -> None:
    hunk = hunks.parse("\n def first(items, end):\n+    end += 1\n     if items:\n")
    assert hunks.apply(hunk, CODE) == CODE.replace("end):\n    if", "end):\n    end += 1\n    if")


def test_a_hunk_does_not_match_lines_of_another_relative_indentation() -> None:
    hunk = hunks.parse(" if items:\n-return min(items[0], end)\n+return end\n")
    with pytest.raises(hunks.BadHunk, match="occur 0 times: 'if items:'"):
        hunks.apply(hunk, CODE)


def test_a_hunk_that_fits_twice_is_refused() -> None:
    hunk = hunks.parse("-return min(items[0], end)\n+return end\n")
    with pytest.raises(hunks.BadHunk, match="occur 2 times"):
        hunks.apply(hunk, CODE)


@pytest.mark.parametrize(
    ("text", "told"),
    [(" return end", "no line begins with"), ("-return end\nreturn 0", "'return 0'")],
)
def test_a_hunk_that_is_none_is_refused(text: str, told: str) -> None:
    with pytest.raises(hunks.BadHunk, match=told):
        hunks.parse(text)


def _problems(tmp_path: Path, **changes: str) -> list[str]:
    folder = tmp_path / "embedlog/shop"
    folder.mkdir(parents=True)
    (folder / "till.py").write_text(CODE)
    (folder / "moved.py").write_text("tax = 7\n")
    fields = {
        "change": " if items:\n-    return min(items[0], end)\n+    return end",
        "breaks": "The first item is lost.",
        **changes,
    }
    return lists.problems(Mutant("shop", "lost", "embedlog/shop/till.py", **fields), tmp_path)


def test_a_good_entry_has_no_problem(tmp_path: Path) -> None:
    assert _problems(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"change": "-tax = 7\n+tax = 8"}, "occur 0 times: 'tax = 7' ...; they occur in embedlog/"),
        ({"change": " if items:\n-    return min(items[0], end)"}, "is no Python with it"),
        ({"change": "-class Other:\n+class Other():"}, "changes nothing but the formatting"),
        ({"change": "-class Other:\n+class Other:  # it"}, "changes nothing but the formatting"),
        ({"breaks": ""}, "`breaks` is no sentence"),
    ],
)
def test_an_entry_that_the_code_left_behind_is_told(
    tmp_path: Path, changes: dict[str, str], told: str
) -> None:
    (found,) = _problems(tmp_path, **changes)
    assert found.startswith("shop: lost: ")
    assert told in found


def test_a_file_of_another_room_and_a_missing_test_are_told(tmp_path: Path) -> None:
    mutant = Mutant("bank", "lost", "embedlog/shop/till.py", "-a\n+b", "A.", ("tests/no.py::x",))
    assert [each.rpartition(": ")[2] for each in lists.problems(mutant, tmp_path)][:2] == [
        "embedlog/shop/till.py is no file of the room",
        "there is no tests/no.py::x",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[[mutant]]\nid = 'a'\nfile = 'b'\n",  # no change
        "[[mutant]]\nid = 'a'\nfile = 'b'\nchange = 'c'\nequivelent = 'd'\n",
        "[[mutants]]\n",
        "[[mutant\n",
    ],
)
def test_a_list_with_a_wrong_key_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.toml").write_text(text)
    with pytest.raises(BadList, match=r"list\.toml, after 0 good entries"):
        lists.read(tmp_path / "list.toml", "list")


def test_a_room_stands_for_the_rooms_below_it_and_an_id_for_one_mutant() -> None:
    room = next(room for room in lists.rooms() if "/" in room)
    above = lists.chosen([room.partition("/")[0]])
    assert {mutant.room for mutant in above} >= {room}
    one = lists.of_room(room)[0]
    assert lists.chosen([one.id]) == [one]
    with pytest.raises(BadList, match="nowhere"):
        lists.chosen(["nowhere"])
