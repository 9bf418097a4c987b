"""The names of what processes exchange in a data directory.

    embedlog-commit                   the last commit, and what was committed before
    embedlog-commit.done .undone      what it will say next
    .exchange/staged/<job>/           files that tasks write, and the manifest names
    .exchange/inbox/<id>              manifests that nobody has taken yet
    .exchange/taken/<id>              those that the owner is at
    .exchange/answers/<id>            what became of them
    .exchange/pins/<id>               what retention leaves alone for a while

The directory is there only while somebody uses it: a broker of Apache Kafka refuses a data
directory with a directory in it that is no partition's. The file it does not mind.
"""

from __future__ import annotations

COMMIT = "embedlog-commit"
EXCHANGE = ".exchange"
STAGED = "staged"
INBOX = "inbox"
TAKEN = "taken"
ANSWERS = "answers"
PINS = "pins"


def commit_file(data: str) -> str:
    """Where the last commit is recorded."""
    return f"{data}/{COMMIT}"


def exchange(data: str) -> str:
    """The directory through which processes exchange files."""
    return f"{data}/{EXCHANGE}"


def part(data: str, name: str) -> str:
    """One of the directories in it."""
    return f"{data}/{EXCHANGE}/{name}"
