"""`sasl.jaas.config`: the line with the credentials of Kafka's Java clients.

    org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b";

The syntax is Java's: words, texts in single or double quotes with backslashes, comments, one entry
with a semicolon at its end.
"""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS = ("required", "requisite", "sufficient", "optional")
_QUOTES = "\"'"
_PUNCTUATION = "=;"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def parse_jaas(text: str) -> tuple[str, dict[str, str]]:
    """Return the name of the login module, without its packages, and its options.

    >>> parse_jaas("a.b.PlainLoginModule required username='me' password=\\"my \\\\\\" word\\";")
    ('PlainLoginModule', {'username': 'me', 'password': 'my " word'})

    Raises:
        ConfigError: the text has another form. It holds a password, so the error does not quote it.
    """
    tokens = list(_tokens(text))
    if len(tokens) < 3 or tokens[1].lower() not in _FLAGS or tokens[-1] != ";":
        raise ConfigError(
            'sasl.jaas.config: must be: <login module> required <option>="<value>" ... ;'
        )
    module, _, *rest, _ = tokens
    options: dict[str, str] = {}
    for name, equals, value in zip(rest[0::3], rest[1::3], rest[2::3], strict=False):
        if equals != "=" or name in _PUNCTUATION or value in ("=", ";"):
            break
        options[name] = value.removeprefix("\0")
    if 3 * len(options) != len(rest):
        raise ConfigError('sasl.jaas.config: options must be <name>="<value>", each once')
    return module.rpartition(".")[2], options


def _tokens(text: str) -> Iterator[str]:
    """Yield words and punctuation; a quoted text begins with NUL, to differ from punctuation."""
    position = 0
    while position < len(text):
        char = text[position]
        if char.isspace():
            position += 1
        elif text.startswith(("//", "/*"), position):
            end = "\n" if text[position + 1] == "/" else "*/"
            found = text.find(end, position + 2)
            position = len(text) if found < 0 else found + len(end)
        elif char in _QUOTES:
            quoted, position = _quoted(text, position)
            yield "\0" + quoted
        elif char in _PUNCTUATION:
            yield char
            position += 1
        else:
            start = position
            while position < len(text) and not _ends_word(text[position]):
                position += 1
            yield text[start:position]


def _ends_word(char: str) -> bool:
    return char.isspace() or char in _QUOTES or char in _PUNCTUATION


def _quoted(text: str, start: int) -> tuple[str, int]:
    """Return the text in quotes that begins at `start`, and the position after it."""
    quote = text[start]
    out: list[str] = []
    position = start + 1
    while position < len(text):
        char = text[position]
        if char == quote:
            return "".join(out), position + 1
        if char == "\\" and position + 1 < len(text):
            position += 1
            char = _ESCAPES.get(text[position], text[position])
        out.append(char)
        position += 1
    raise ConfigError("sasl.jaas.config: a quote is not closed")
