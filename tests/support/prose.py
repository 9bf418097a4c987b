"""Find sentences that a reader has to decode: `python -m tests.support.prose [FILE ...]`.

The patterns are marks of sentences without a clear subject. A hit is a place to look, and some are
good English; the test beside this file therefore limits their number and does not forbid them.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
CHAPTERS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs")

_FREE_RELATIVE = (
    r"\b(?:what|whatever) (?:is|are|was|were|has|had|have|it|they|he|she|comes?|came|stands?|does|did|"
    r"can|could|may|must|follows?|remains?|remained|belongs?)\b"
)
PATTERNS = {
    "a clause with 'what' as a noun": re.compile(_FREE_RELATIVE, re.IGNORECASE),
    "a clause with 'who' as a noun": re.compile(
        r"\b(?:whoever|whomever)\b|\b(?:of|to|for|by|with|from|tells?|asks?|lets?|and|or|but) whom?\b"
        r"|(?:^|[.:;(] ?)who\b(?!se)|\b(?:it is|that is|is) for who\b",
        re.IGNORECASE,
    ),
    "'those that'": re.compile(
        r"\b(?:those (?:that|which|who|of)|that of|(?:such (?:a|an) )one that|one that|ones that"
        r"|of (?:which|those|whom))\b",
        re.IGNORECASE,
    ),
    "'so many'": re.compile(r"\bso (?:many|much|long|few|often)\b(?! as)", re.IGNORECASE),
    "'is told'": re.compile(r"\b(?:is|are|was|were|be|been) (?:told|asked|said)\b", re.IGNORECASE),
    "', too'": re.compile(r", too(?=[.,;:)]|$)", re.IGNORECASE | re.MULTILINE),
}


class Hit(NamedTuple):
    """One match of one pattern."""

    place: str
    pattern: str
    text: str

    def __str__(self) -> str:
        return f"{self.place} {self.pattern}: {self.text}"


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return line and text of each docstring, comment and message of a Python file.

    A message is a string of at least four words that is no docstring. Of other files each paragraph
    outside of blocks of code is a text.
    """
    if path.suffix == ".py":
        yield from _python_texts(path.read_text())
    else:
        yield from _paragraphs(path.read_text())


def _python_texts(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.count(" ") >= 3:
                yield node.lineno, " ".join(node.value.split())
    comment: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if comment and line != last + 1:
            yield first, " ".join(comment)
            comment = []
        first = first if comment else line
        last = line
        comment.append(token.string.lstrip("#: "))
    if comment:
        yield first, " ".join(comment)


def _paragraphs(source: str) -> Iterator[tuple[int, str]]:
    without_code = re.sub(
        r"^```.*?^```|`[^`\n]+`", lambda m: "\n" * m[0].count("\n"), source, flags=re.S | re.M
    )
    line = 1
    for paragraph in re.split(r"(\n\s*\n|\n(?=\s*[-|]))", without_code):
        if paragraph.strip():
            yield line + len(paragraph) - len(paragraph.lstrip("\n")), " ".join(paragraph.split())
        line += paragraph.count("\n")


def hits_of(path: Path) -> Iterator[Hit]:
    """Return every match of every pattern in the texts of a file."""
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
    for line, text in texts_of(path):
        for pattern, expression in PATTERNS.items():
            for match in expression.finditer(text):
                around = text[max(match.start() - 50, 0) : match.end() + 50]
                yield Hit(f"{name}:{line}", pattern, around)


def files_of(*places: str) -> list[Path]:
    """Return the Python and Markdown files at or below these places of the project."""
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        inside = [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.md")]
        found += [each for each in inside if "__pycache__" not in each.parts]
    return sorted(found)


if __name__ == "__main__":
    hits = [
        hit
        for path in files_of(*(sys.argv[1:] or ["embedlog", "wire", *CHAPTERS]))
        for hit in hits_of(path)
    ]
    print(*hits, f"{len(hits)} hits", sep="\n")
