"""Error message for a locked data directory, made from the content of its lock file."""

from __future__ import annotations

from embedlog.runtime.files import parent


def why_locked(path: str, owner: str, own_pid: int) -> str:
    """Return why the directory of the lock file at `path` cannot be opened, with advice.

    `owner` is the content of the file; `OsLock` shows its format. A Java broker leaves it empty.
    """
    words = owner.partition("\n")[0].split()
    known = dict(zip(words[::2], words[1::2], strict=False))
    pid, since = known.get("pid", ""), known.get("since", "").replace("T", " ")
    addresses = addresses_in(owner)
    directory = parent(path) or "."
    if not pid:
        return (
            f"{directory} is held by another process, which did not say who it is (a broker of "
            f"Apache Kafka does not): stop it first, or connect to it"
        )
    since = f" since {since}" if since else ""
    if addresses:
        advice = f"it listens: connect to {', '.join(addresses)}, or close it there first"
    else:
        advice = (
            "it does not listen: let the owner call listen() of its cluster and connect to that "
            "address, or close it there first"
        )
    if pid == str(own_pid):
        return (
            f"{directory} is held by pid {pid}, this process,{since}: use the cluster that is "
            f"open already, or close it first"
        )
    return f"{directory} is held by pid {pid}{since}; {advice}"


def addresses_in(owner: str) -> list[str]:
    """Return the addresses, "host:port", in the content of a lock file."""
    lines = owner.split("\n")
    named = lines[1] if len(lines) > 1 else ""
    return named.removeprefix("at ").split() if named.startswith("at ") else []
