"""Find sentences that a reader has to decode: `python -m tests.support.prose [FILE ...]`.

The six patterns are marks of sentences without a clear subject. A hit is a place to look, and some
hits are good English; `tests/test_prose.py` therefore limits their number and does not forbid them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
CHAPTERS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "examples")


class Pattern(NamedTuple):
    """A mark of an unclear sentence."""

    expression: re.Pattern[str]
    words: tuple[str, ...]
    """Every match contains one of these. Texts without them are not searched, which saves time."""


def _pattern(expression: str, *words: str) -> Pattern:
    return Pattern(re.compile(expression, re.IGNORECASE), words)


PATTERNS = {
    "a clause with 'what' as a noun": _pattern(
        r"\b(?:what|whatever) (?:is|are|was|were|has|had|have|it|they|he|she|comes?|came|stands?|"
        r"does|did|can|could|may|must|follows?|remains?|remained|belongs?)\b",
        "what",
    ),
    "a clause with 'who' as a noun": _pattern(
        r"\b(?:whoever|whomever)\b|\b(?:of|to|for|by|with|from|tells?|asks?|lets?|and|or|but) "
        r"whom?\b|(?:^|[.:;(] ?)who\b|\b(?:it is|that is|is) for who\b",
        "who",
    ),
    "'those that'": _pattern(
        r"\b(?:those (?:that|which|who|of)|that of|such an? one|one that|ones that"
        r"|of (?:which|whom)"
        # "Of those pauses" is good English, "of those was" is not.
        r"|of those(?! (?!was|is|has|does|as|its?\b)\w+s\b))\b",
        *("those", "that of", "such a", "one that", "ones that", "of which", "of whom"),
    ),
    "'so many'": _pattern(
        # "So long as" and "so long that nobody waits" are good English.
        r"\bso (?:many|much|long|few|often)\b(?! as\b)(?! that (?!is|are|was|were|has|had))",
        *("so many", "so much", "so long", "so few", "so often"),
    ),
    "'is told'": _pattern(
        r"\b(?:is|are|was|were|be|been) (?:told|asked|said)\b", "told", "asked", "said"
    ),
    "', too'": _pattern(r", too(?=[.,;:)]|$)", ", too"),
}

QUOTED = ("offsets don't match what are assigned",)
"""Words of Kafka and of Spark's connector in our messages. We do not choose them."""

_LITERAL = re.compile(
    r"#[^\n]*"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    re.DOTALL,
)
_PREFIX = re.compile(r"(?<!\w)[a-zA-Z]{1,2}$")
_FIELD = re.compile(r"\{[^{}]*\}")
_ESCAPE = re.compile(r"\\[nt]")
_SQL = re.compile(r"(?:SELECT|INSERT|CREATE|UPDATE|DELETE|MERGE|WITH)\b")
_CODE = re.compile(r"`[^`]{1,120}`")
_QUOTATION = re.compile(r'(?<![\w"])"[^"]{1,200}"(?![\w"])')
_BLOCK_OF_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_PARAGRAPH_END = re.compile(r"(\n\s*\n|\n(?=\s*[-|]))")
_QUESTION = re.compile(r"(?:^|[.?!] )(?:And |But |So )?$")
_SENTENCE_END = re.compile(r"[.?!;](?=\s|$)")
_NOUN = "N"
"""Stands for code, quotations and values in a text, so that the words around them keep apart."""


class Hit(NamedTuple):
    """One match of one pattern."""

    place: str
    pattern: str
    text: str

    def __str__(self) -> str:
        return f"{self.place} {self.pattern}: {self.text}"


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Return each docstring, comment and message of a Python file, and the line where it begins.

    Comments on lines below each other are one text, and so are strings that Python joins. One
    regular expression that knows literals takes a tenth of the time of `ast` and `tokenize`.
    """
    parts: list[str] = []
    kind = ""
    begin = end = 0
    for match in _LITERAL.finditer(source):
        gap = source[end : match.start()]
        if not parts or not _is_continued(kind, match[0], gap):
            if text := _text(kind, parts):
                yield source.count("\n", 0, begin) + 1, text
            parts = []
            kind = _kind(match[0])
            begin = match.start()
        end = match.end()
        parts.append(_content(match[0], gap[-3:]))
    if text := _text(kind, parts):
        yield source.count("\n", 0, begin) + 1, text


def _kind(literal: str) -> str:
    if literal[0] == "#":
        return "comment"
    return "docstring" if literal[:3] in {'"""', "'''"} else "message"


def _is_continued(kind: str, literal: str, gap: str) -> bool:
    """Does the literal after this gap belong to the text of this kind before the gap?"""
    if kind == "docstring" or _kind(literal) != kind:
        return False
    if kind == "comment":
        return gap.count("\n") == 1 and gap.isspace()
    return not _PREFIX.sub("", gap).strip()


def _content(literal: str, before: str) -> str:
    """Return the words of a literal; `before` ends with its prefix."""
    if literal[0] == "#":
        return literal.lstrip("#: ") + " "
    found = _PREFIX.search(before)
    prefix = found[0].lower() if found else ""
    if _kind(literal) == "docstring":
        return literal[3:-3]
    if "r" in prefix or "b" in prefix:
        return ""  # a regular expression, or bytes
    words = _ESCAPE.sub(" ", literal[1:-1])
    return _FIELD.sub(_NOUN, words) if "f" in prefix else words


def _text(kind: str, parts: list[str]) -> str:
    """Return the words as one line; empty if they are no prose."""
    words = "".join(parts)
    is_no_prose = kind == "message" and (words.count(" ") < 3 or _SQL.match(words))
    return "" if is_no_prose else _plain(words)


def _plain(words: str) -> str:
    words = " ".join(words.split())
    for quoted in QUOTED:
        words = words.replace(quoted, _NOUN)
    if "`" in words:
        words = _CODE.sub(_NOUN, words)
    return _QUOTATION.sub(_NOUN, words) if '"' in words else words


def markdown_texts(source: str) -> Iterator[tuple[int, str]]:
    """Return each paragraph, item and row outside of blocks of code, and the line of each."""
    line = 1
    without_code = _BLOCK_OF_CODE.sub(lambda found: "\n" * found[0].count("\n"), source)
    for paragraph in _PARAGRAPH_END.split(without_code):
        if paragraph.strip():
            yield line + len(paragraph) - len(paragraph.lstrip("\n")), _plain(paragraph)
        line += paragraph.count("\n")


def matches_in(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Return every match of every pattern in a text, with the pattern's name."""
    lowered = text.lower()
    for name, pattern in PATTERNS.items():
        if any(word in lowered for word in pattern.words):
            for match in pattern.expression.finditer(text):
                if not _asks(text, match):
                    yield name, match


def _asks(text: str, match: re.Match[str]) -> bool:
    """Is the match the question word of a direct question, as in "What is lost?"?"""
    if "?" not in text[match.end() :] or not _QUESTION.search(text[: match.start()]):
        return False
    end = _SENTENCE_END.search(text, match.end())
    return end is not None and end[0] == "?" and match[0].lower().startswith(("what ", "who"))


def hits_of(path: Path) -> Iterator[Hit]:
    """Return every match of every pattern in the texts of a file."""
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
    source = path.read_text()
    for line, text in (python_texts if path.suffix == ".py" else markdown_texts)(source):
        for pattern, match in matches_in(text):
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
    places = sys.argv[1:] or ["embedlog", "wire", *CHAPTERS]
    hits = [hit for path in files_of(*places) for hit in hits_of(path)]
    print(*hits, f"{len(hits)} hits", sep="\n")
