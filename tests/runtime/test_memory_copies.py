"""Copies of files in memory share their bytes until one of the two changes."""

from __future__ import annotations

import random

import pytest

from embedlog.runtime.memory_files import MemoryFiles, MemoryNode


def content(node: MemoryNode) -> bytes:
    return bytes(node.view(0, node.size))


@pytest.fixture
def node() -> MemoryNode:
    made = MemoryNode()
    made.write([b"0123456789"], 0)
    return made


def test_a_copy_shares_the_buffer(node: MemoryNode) -> None:
    copy = node.copied()
    assert content(copy) == b"0123456789"
    assert copy.view(0, 10).obj is node.view(0, 10).obj


def test_an_append_to_the_original_keeps_its_buffer(node: MemoryNode) -> None:
    buffer = node.view(0, 1).obj
    copy = node.copied()
    node.write([b"abc"], 10)
    assert node.view(0, 1).obj is buffer
    assert (content(node), content(copy)) == (b"0123456789abc", b"0123456789")


def test_a_cut_and_a_growth_show_zeros(node: MemoryNode) -> None:
    copy = node.copied()
    node.resize(4)
    node.resize(8)
    copy.resize(12)
    assert content(node) == b"0123\0\0\0\0"
    assert content(copy) == b"0123456789\0\0"


def test_a_cut_copy_does_not_see_later_bytes_of_the_original(node: MemoryNode) -> None:
    copy = node.copied()
    node.write([b"later"], 10)
    copy.resize(15)
    assert content(copy) == b"0123456789\0\0\0\0\0"


@pytest.mark.parametrize("seed", range(40))
def test_copies_behave_like_independent_files(seed: int) -> None:
    """Compare random calls on a family of copies with plain byte arrays."""
    random_ = random.Random(seed)
    family = [(MemoryNode(), bytearray())]
    for _ in range(60):
        node, model = random_.choice(family)
        kind = random_.randrange(4)
        if kind == 0 and len(family) < 6:
            family.append((node.copied(), bytearray(model)))
        elif kind == 1:
            size = random_.randrange(len(model) + 3000)
            node.resize(size)
            model[:] = model[:size].ljust(size, b"\0")
        else:
            data = random_.randbytes(random_.choice([1, 7, 900, 9000]))
            position = len(model) if kind == 2 else random_.randrange(len(model) + 20)
            node.write([data[:3], data[3:]] if len(data) > 3 else [data], position)
            model.extend(bytes(max(0, position - len(model))))
            model[position : position + len(data)] = data
        for each, expected in family:
            assert content(each) == bytes(expected), seed


def test_a_copied_tree_has_its_own_names() -> None:
    files = MemoryFiles()
    files.make_directory("d/e")
    files.open("d/e/f", create=True).write([b"x"], 0)
    other = MemoryFiles(tree=files.tree.copied(files.clock))
    files.remove("d/e/f")
    other.open("d/g", create=True)
    assert other.read("d/e/f") == b"x"
    assert files.list("d") == ["e"]
    assert other.list("d") == ["e", "g"]
