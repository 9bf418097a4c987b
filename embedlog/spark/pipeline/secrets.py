"""Passwords and the like in a project: from the environment into settings, and never into texts.

A text `${NAME}` in an option or in [decode.registry] stands for the environment variable NAME, so
that no file needs a secret. The values of such variables, and of options whose names sound like a
secret, are hidden in the errors and events of a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote, urlsplit

from embedlog.runtime.environment import variable
from embedlog.spark.pipeline.errors import ProjectError

HIDDEN = "[hidden]"
_LENGTH_MIN = 3
"""Shorter values are not hidden: every text has them."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SOUNDS_SECRET = re.compile(r"password|passwd|secret|token|jaas|credential|user.?info|ssl.*key$",
                            re.IGNORECASE)  # fmt: skip
_QUOTED = re.compile(r"""password\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")


def sounds_secret(name: str) -> bool:
    """Whether the value of an option of this name must not be shown."""
    return _SOUNDS_SECRET.search(name) is not None


def expanded(text: str, where: str) -> str:
    """Return a text with the values of its environment variables.

    Raises:
        ProjectError: a variable is not set.
    """

    def value(found: re.Match[str]) -> str:
        known = variable(found[1])
        if known is None:
            raise ProjectError(f"{where}: the environment variable {found[1]} is not set")
        return known

    return _VARIABLE.sub(value, text)


def split_url(url: str, where: str) -> tuple[str, str | None]:
    """Return a URL without its user information, and this as `user:password`, or None.

    Raises:
        ProjectError: the URL is not one of HTTP; the message does not contain it.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ProjectError(f"{where}: url: not a URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ProjectError(f"{where}: url: http:// or https://, and a host, are needed")
    if ":" in host:
        host = f"[{host}]"
    bare = parts._replace(netloc=host if port is None else f"{host}:{port}").geturl()
    if parts.username is None:
        return bare, None
    return bare, f"{unquote(parts.username)}:{unquote(parts.password or '')}"


def secrets_of(options: Iterable[Mapping[str, str]], user_info: str | None) -> tuple[str, ...]:
    """Return the texts of a project that must not be shown, the longest first."""
    found: set[str] = set()
    for each in options:
        for name, text in each.items():
            if sounds_secret(name):
                found.add(text)
                found.update(first or second for first, second in _QUOTED.findall(text))
    if user_info is not None:
        found |= {user_info, user_info.partition(":")[2]}
    found |= {quote(text, safe="") for text in found}
    return tuple(sorted((t for t in found if len(t) >= _LENGTH_MIN), key=len, reverse=True))


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return a text without the secrets in it."""
    for each in secrets:
        text = text.replace(each, HIDDEN)
    return text
