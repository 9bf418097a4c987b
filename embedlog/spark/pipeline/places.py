"""Rules for the names and directories of a project, so that no two parts share a place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from embedlog.spark.pipeline.errors import ProjectError
from embedlog.topic_names import problem_of

_NAME_MAX = 100
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_FORBIDDEN = re.compile(r"[/\\\"'\x00-\x1f\x7f]")


class Place(NamedTuple):
    """A directory and its use. Directories of logs may be the same, all others are apart."""

    what: str
    path: str
    is_log: bool = False


def local_directory(base: Path, text: str) -> str:
    """Return the absolute path of a directory, without links and `..`; it need not exist.

    Raises:
        ProjectError: the text is an address, such as s3a:/bucket.
    """
    scheme = _SCHEME.match(text)
    if scheme:
        raise ProjectError(
            f"{text}: {scheme[1]}:// is not supported; a directory that the driver and all "
            "executors see is needed"
        )
    try:
        return str((base / Path(text).expanduser()).resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise ProjectError(f"{text!r}: not a path: {error}") from None


def check_name(name: str, where: str) -> None:
    """Refuse a name that is no single part of a path; directories and files are named by it."""
    if name in (".", "..") or name != name.strip() or _FORBIDDEN.search(name):
        raise ProjectError(
            f"{where}: name = {name!r}: slashes, quotes, control characters and spaces at an end "
            "are not allowed"
        )
    if len(name.encode()) > _NAME_MAX:
        raise ProjectError(f"{where}: name = {name!r}: {_NAME_MAX} bytes are allowed")


def check_topics(names: Sequence[str], where: str) -> None:
    """Refuse duplicates and texts that are no topic name, such as a pattern or a list."""
    for name in names:
        problem = problem_of(name)
        if problem is not None:
            raise ProjectError(f"{where}: {name!r} is no topic's name: {problem}")
        if names.count(name) > 1:
            raise ProjectError(f"{where}: {name!r} comes twice")


def check_apart(places: Sequence[Place], where: str) -> None:
    """Refuse a place that is another place, or is in it."""
    for number, one in enumerate(places):
        for other in places[:number]:
            if one.is_log and other.is_log and _is_same(one.path, other.path):
                continue
            if _is_same(one.path, other.path) or _is_inside(one.path, other.path):
                raise _together(one, other, where)
            if _is_inside(other.path, one.path):
                raise _together(other, one, where)


def check_iceberg(tables: Mapping[str, Mapping[str, str]], where: str) -> None:
    """Refuse two sinks that write to one table of a catalogue. `tables` are options by sink."""
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    for sink, options in tables.items():
        if not any(name.startswith("catalog.") for name in options):
            continue  # its catalogue is in its directory
        key = tuple(sorted({"table": "pipeline.rows", **options}.items()))
        if key in seen:
            raise ProjectError(f"{where}: the sinks {seen[key]!r} and {sink!r} write to one table")
        seen[key] = sink


def _is_same(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return Path(one).samefile(other)
    except OSError:
        return False  # one of them is not there yet


def _is_inside(inner: str, outer: str) -> bool:
    return any(_is_same(str(each), outer) for each in Path(inner).parents)


def _together(inner: Place, outer: Place, where: str) -> ProjectError:
    how = "is also" if _is_same(inner.path, outer.path) else f"({inner.path}) is inside of"
    return ProjectError(
        f"{where}: {inner.what} {how} {outer.what} ({outer.path}): "
        "each needs a directory of its own"
    )
