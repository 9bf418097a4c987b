"""`python -m tests.mutants.candidates FILE...`: print small changes of files, as a list of mutants.

    python -m tests.mutants.candidates embedlog/purgatory/*.py > /tmp/purgatory.toml
    python -m tests.mutants /tmp/purgatory.toml            # the survivors are worth a look

The changes follow the bugs that tests tend to miss: a dropped statement, guard, operand or
argument, two calls in the other order, a comparison or a gate that is off by one, a swallowed
error. A machine does not know which of them matter: choose by hand, and say what each breaks.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants import hunks

BOUNDARIES = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
VERSIONS = re.compile(r"(\d+)(\+|-\d+)")
NUMBER_MIN = 2
"""Smaller numbers are flags and starts of counts, in which a change is mostly noticed."""


class Edit(NamedTuple):
    """A new text for a part of the source, and what kind of change that is."""

    kind: str
    start: int
    end: int
    text: str


class Finder:
    """Finds the changes of one file."""

    def __init__(self, source: str) -> None:
        self._source = source.encode()
        self._line_starts = [0]
        for line in self._source.split(b"\n"):
            self._line_starts.append(self._line_starts[-1] + len(line) + 1)
        self._tree = ast.parse(source)

    def edits(self) -> Iterator[Edit]:
        """Yield the changes, in the order of the source."""
        found: list[Edit] = []
        for node in ast.walk(self._tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    found += self._of_block(node, block)
            if isinstance(node, ast.BoolOp):
                found += self._of_operands(node)
            elif isinstance(node, ast.Call):
                found += self._of_call(node)
            elif isinstance(node, ast.Compare):
                found += self._of_comparison(node)
            elif isinstance(node, ast.Constant):
                found += self._of_versions(node)
        for node in self._tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                found += self._of_constant(node.value)
        yield from sorted(found, key=lambda edit: edit.start)

    def changed(self, edit: Edit) -> str:
        """Return the source with the change."""
        return (self._source[: edit.start] + edit.text.encode() + self._source[edit.end :]).decode()

    def _span(self, node: ast.AST) -> tuple[int, int]:
        at = self._line_starts
        return (
            at[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
            at[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _instead(self, kind: str, node: ast.AST, text: str) -> Edit:
        return Edit(kind, *self._span(node), text)

    def _of_block(self, owner: ast.AST, block: list[ast.stmt]) -> Iterator[Edit]:
        for node, following in itertools.zip_longest(block, block[1:]):
            if kind := _droppable(node, owner):
                yield self._without(kind, node, is_only=len(block) == 1)
            if _is_call(node) and following and _is_action(following):
                yield self._swapped(node, following)

    def _without(self, kind: str, node: ast.stmt, *, is_only: bool) -> Edit:
        start, end = self._span(node)
        if is_only:
            return Edit(kind, start, end, "pass")
        # With its line: the indentation before it, and the line break and any comment behind it.
        start = self._source.rfind(b"\n", 0, start) + 1
        return Edit(kind, start, self._line_end(end) + 1, "")

    def _line_end(self, position: int) -> int:
        found = self._source.find(b"\n", position)
        return len(self._source) if found < 0 else found

    def _swapped(self, one: ast.stmt, other: ast.stmt) -> Edit:
        (start, middle), (second, end) = self._span(one), self._span(other)
        between = self._source[middle:second].decode()
        return Edit("swap", start, end, self._text(other) + between + self._text(one))

    def _of_operands(self, node: ast.BoolOp) -> Iterator[Edit]:
        joint = " and " if isinstance(node.op, ast.And) else " or "
        for left_out in node.values:
            kept = [self._in_brackets(each, node) for each in node.values if each is not left_out]
            yield self._instead("operand", node, joint.join(kept))
        for turned in node.values:
            texts = [self._in_brackets(each, node) for each in node.values]
            place = node.values.index(turned)
            texts[place] = f"(not ({texts[place]}))"
            yield self._instead("negate", node, joint.join(texts))

    def _in_brackets(self, node: ast.expr, parent: ast.BoolOp) -> str:
        """Return the text of an operand; brackets around it are not part of its node."""
        text = self._text(node)
        needs = isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr))
        return f"({text})" if needs or "\n" in text else text

    def _of_call(self, node: ast.Call) -> Iterator[Edit]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in {"min", "max"} and len(node.args) > 1:
            for left_out in node.args:
                kept = [self._text(each) for each in node.args if each is not left_out]
                text = kept[0] if len(kept) == 1 else f"{name}({', '.join(kept)})"
                yield self._instead(name, node, f"({text})" if "\n" in text else text)
        for word in node.keywords:
            if word.arg in {"key", "reverse", "default"} and name in {"sorted", "min", "max"}:
                start, end = self._span(word)
                start = self._source.rindex(b",", 0, start)
                yield Edit("keyword", start, end, "")

    def _of_comparison(self, node: ast.Compare) -> Iterator[Edit]:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            if type(op) in BOUNDARIES:
                start, end = self._span(left)[1], self._span(right)[0]
                between = self._source[start:end].decode()
                sign = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}[type(op)]
                yield Edit("boundary", start, end, between.replace(sign, BOUNDARIES[type(op)], 1))
            for side in (left, right):
                if isinstance(side, ast.Constant) and type(side.value) is int:
                    is_gate = "version" in self._text(node)
                    if side.value >= NUMBER_MIN or is_gate:
                        kind = "gate" if is_gate else "number"
                        yield self._instead(kind, side, str(side.value + 1))
                        if is_gate and side.value:
                            yield self._instead(kind, side, str(side.value - 1))
            left = right

    def _of_versions(self, node: ast.Constant) -> Iterator[Edit]:
        """Move the first version of a range as `"3+"` or `"0-4"`, in a schema."""
        if isinstance(node.value, str) and (found := VERSIONS.fullmatch(node.value)):
            yield self._instead("gate", node, f'"{int(found[1]) + 1}{found[2]}"')

    def _of_constant(self, value: ast.expr) -> Iterator[Edit]:
        """Change the numbers in the value of a constant, as a limit or the first version."""
        for node in ast.walk(value):
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0:
                yield self._instead("constant", node, str(node.value + 1))
                yield self._instead("constant", node, str(node.value - 1))


def _droppable(node: ast.stmt, owner: ast.AST) -> str:
    """Return the kind of change that dropping a statement is; empty if it makes no sense."""
    if isinstance(node, ast.Raise) and isinstance(owner, ast.ExceptHandler):
        return "swallow"
    if isinstance(node, ast.Delete | ast.AugAssign) or _is_action(node):
        return "drop"
    if isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) != "TYPE_CHECKING":
        if isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break):
            return "guard"
        return "drop"
    return ""


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _is_action(node: ast.stmt) -> bool:
    """Whether a statement calls something, or assigns to an attribute or an item."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await | ast.Yield | ast.YieldFrom)
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(each, ast.Attribute | ast.Subscript) for each in targets)


def candidates(file: str, source: str) -> Iterator[str]:
    """Yield entries for a list; changes that are no Python or make no difference are left out."""
    finder = Finder(source)
    numbers: dict[str, int] = {}
    tree = ast.parse(source)
    for edit in finder.edits():
        changed = finder.changed(edit)
        try:
            is_other = hunks.differ(tree, ast.parse(changed))
        except SyntaxError:
            continue
        change = _hunk(source.split("\n"), changed.split("\n")) if is_other else ""
        if change:
            line = source.encode()[: edit.start].count(b"\n") + 1
            name = f"{file.removesuffix('.py').replace('/', '-')}-{line}-{edit.kind}"
            numbers[name] = numbers.get(name, 0) + 1
            if numbers[name] > 1:
                name += f"-{numbers[name]}"
            yield f"[[mutant]]\nid = \"{name}\"\nfile = \"{file}\"\nchange = '''\n{change}\n'''\n"


def _hunk(before: list[str], after: list[str]) -> str:
    """Return the changed lines with as much context as makes them unique; empty if none does."""
    start = _common(before, after)
    tail = _common(before[start:][::-1], after[start:][::-1])
    end = len(before) - tail
    new = after[start : len(after) - tail]
    top, bottom = start, end
    while True:
        old = before[top:bottom]
        margin = min((len(line) - len(line.lstrip()) for line in [*old, *new] if line), default=0)
        found = hunks.places(tuple(line[margin:] for line in old), before) if old else []
        if len(found) == 1 and old[0] and old[-1]:
            break
        if top > 0 and (start - top <= bottom - end or bottom == len(before)):
            top -= 1
        elif bottom < len(before):
            bottom += 1
        else:
            return ""
    marked = [
        *((" ", line) for line in before[top:start]),
        *(("-", line) for line in before[start:end]),
        *(("+", line) for line in new),
        *((" ", line) for line in before[end:bottom]),
    ]
    return "\n".join((mark + line[margin:]).rstrip() for mark, line in marked)


def _common(one: list[str], other: list[str]) -> int:
    """Return how many lines at the beginning are the same."""
    return len(os.path.commonprefix([one, other]))


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print("\n".join(candidates(path, Path(path).read_text())))
