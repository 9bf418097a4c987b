"""Tokens of a `.proto` file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from embedlog.testing.registry.schemas.kinds import UnreadableSchema

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<float>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    | (?P<int>0[xX][0-9a-fA-F]+|\d+)
    | (?P<name>\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    | (?P<sign>[{}\[\]()<>;:,=+\-/.])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL
)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `kind` is text, float, int, name, sign or end."""

    kind: str
    text: str
    line: int


class Tokens:
    """The tokens of a file, read one after another."""

    def __init__(self, source: str) -> None:
        self._tokens = _split(source)
        self._next = 0

    @property
    def now(self) -> Token:
        """The token that `take` returns next."""
        return self._tokens[self._next]

    def take(self) -> Token:
        """Return the next token and go on. The last one has the kind "end"."""
        found = self.now
        if found.kind != "end":
            self._next += 1
        return found

    def meets(self, *texts: str) -> bool:
        """Take the next tokens if they are these; return whether they were."""
        found = self._tokens[self._next : self._next + len(texts)]
        if [each.text for each in found if each.kind in {"sign", "name"}] != list(texts):
            return False
        self._next += len(texts)
        return True

    def comes(self, *texts: str) -> bool:
        """Return whether the next token is one of these names or signs."""
        return self.now.kind in {"sign", "name"} and self.now.text in texts

    def expect(self, text: str) -> None:
        """Take a sign or a name.

        Raises:
            UnreadableSchema: another token comes.
        """
        if not self.meets(text):
            raise self.unexpected(f"{text!r}")

    def name(self) -> str:
        """Take a name."""
        return self._of("name", "a name")

    def number(self) -> int:
        """Take an integer, perhaps with a minus."""
        sign = -1 if self.meets("-") else 1
        return sign * int_of(self._of("int", "a number"))

    def string(self) -> str:
        """Take a text; neighbours are one text."""
        found = unquoted(self._of("text", "a text in quotes"))
        while self.now.kind == "text":
            found += unquoted(self.take().text)
        return found

    def _of(self, kind: str, words: str) -> str:
        if self.now.kind != kind:
            raise self.unexpected(words)
        return self.take().text

    def unexpected(self, expected: str) -> UnreadableSchema:
        """Return the error for the next token."""
        found = "the end" if self.now.kind == "end" else repr(self.now.text)
        return UnreadableSchema(f"line {self.now.line}: expected {expected}, found {found}")


def int_of(text: str) -> int:
    """Return the value of an integer: decimal, hexadecimal or octal."""
    if text[:2].lower() == "0x":
        return int(text, 16)
    return int(text, 8) if len(text) > 1 and text[0] == "0" and text.isdigit() else int(text)


def unquoted(text: str) -> str:
    """Return the value of a text in quotes."""

    def value(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xuU" and len(code) > 1:
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if code[0].isdigit() else _PLAIN.get(code, code)

    return _ESCAPE.sub(value, text[1:-1])


def _split(source: str) -> list[Token]:
    found = []
    position, line = 0, 1
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise UnreadableSchema(f"line {line}: unexpected {source[position : position + 10]!r}")
        kind = str(match.lastgroup)
        if kind != "space":
            found.append(Token(kind, match[0], line))
        line += match[0].count("\n")
        position = match.end()
    found.append(Token("end", "", line))
    return found
