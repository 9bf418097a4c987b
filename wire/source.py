"""Writing Python source line by line, for the encoder and decoder generators."""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


class Source:
    """A function under construction: its lines, indentation, names and constants."""

    def __init__(self, signature: str, summary: str) -> None:
        self.lines = [signature, f'    """{summary}"""']
        self.constants: dict[str, Any] = {}
        self._depth = 1
        self._name_count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def block(self, head: str) -> Block:
        """Write `head`; lines written inside the `with` statement are indented."""
        self.line(head)
        return Block(self)

    def indent(self, by: int) -> None:
        self._depth += by

    def name(self, prefix: str) -> str:
        """Return an unused variable name."""
        self._name_count += 1
        return f"{prefix}{self._name_count}"

    def constant(self, name: str, value: object) -> str:
        """Make `value` a global of the function under `name`, and return the name to use."""
        unique, number = name, 1
        while self.constants.setdefault(unique, value) is not value:
            number += 1
            unique = f"{name}_{number}"
        return unique

    def struct_method(self, method: str, codes: str) -> str:
        """Make a method of a `Struct` a global of the function; return the global's name.

        `method` is "pack" or "unpack_from", `codes` the format of the struct.
        """
        name = f"{method}_{codes.replace('?', 't')}"
        if name not in self.constants:
            self.constants[name] = getattr(Struct(">" + codes), method)
        return name

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


class Block:
    """The context manager that `Source.block` returns: it indents by one step."""

    __slots__ = ("_source",)

    def __init__(self, source: Source) -> None:
        self._source = source

    def __enter__(self) -> None:
        self._source.indent(1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._source.indent(-1)


class Run:
    """Neighbouring fixed-size values, collected for one call of struct."""

    __slots__ = ("codes", "values")

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.values: list[str] = []

    def add(self, code: str, value: str) -> None:
        self.codes.append(code)
        self.values.append(value)

    def take(self) -> tuple[str, list[str]]:
        """Return (format, values) and start a new run."""
        format_text = "".join(self.codes)
        values = self.values
        self.codes, self.values = [], []
        return format_text, values
