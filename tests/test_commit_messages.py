"""The commit messages since the rules began, and the check itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.commit_messages import problems

ROOT = Path(__file__).resolve().parent.parent
RULES_SINCE_S = 1795766972
"""Author time, in seconds since 1970, from which on commits follow the rules."""


class Commit(NamedTuple):
    """A commit of the history."""

    name: str
    is_merge: bool
    message: str


def _git(*arguments: str, at: Path = ROOT) -> str:
    # A checkout in CI may belong to another user.
    command = ["git", "-c", "safe.directory=*", "-C", str(at), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _commits(at: Path = ROOT) -> list[Commit]:
    """Return the commits since the rules began."""
    found = []
    for entry in _git("log", "-z", "--format=%H%n%at%n%P%n%B", at=at).split("\0"):
        if entry:
            name, time_s, parents, message = entry.split("\n", 3)
            if int(time_s) >= RULES_SINCE_S:
                found.append(Commit(name[:8], " " in parents, message))
    return found


def _is_clone() -> bool:
    try:
        _git("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@pytest.mark.skipif(not _is_clone(), reason="the sources of a release have no history")
def test_the_history_follows_the_rules() -> None:
    broken = [
        f"{commit.name} {commit.message.splitlines()[0]!r}: {problem}"
        for commit in _commits()
        for problem in problems(commit.message, is_merge=commit.is_merge)
    ]
    assert not broken


def test_only_commits_since_the_rules_began_are_checked(tmp_path: Path) -> None:
    _git("init", "-q", at=tmp_path)
    for subject, time_s in [("the old ways", RULES_SINCE_S - 1), ("log: add it", RULES_SINCE_S)]:
        _git(
            *("-c", "user.name=A", "-c", "user.email=a@example.org"),
            *("commit", "-q", "--allow-empty", "-m", subject, "--date", f"{time_s} +0000"),
            at=tmp_path,
        )
    assert [commit.message.strip() for commit in _commits(tmp_path)] == ["log: add it"]


@pytest.mark.parametrize(
    "subject",
    [
        "brokers: name the new leaders before closing connections at shutdown",
        "storage: adopt batches that other processes have staged, all or none",
        "broker: echo created settings as written, name a new cluster",
        "apis, brokers: move replicas between a broker's directories",
        "wire.records: load the codecs when they are first used",
        "storage, cli: salvage keeps every good batch",  # no list can know that this is a noun
        "README: say what it is and how to start",
        "wire/net: re-use a closed channel",
        "producer: address each batch once",
        "producer: pass Ctrl-C on",
        "tests: embed a broker",
        "cluster: bring the fences back",
        "docs: `open_reader` from another process",
        'Revert "storage: adopt batches"',
        "fixup! storage: adopt batches",
    ],
)
def test_a_good_subject_is_taken(subject: str) -> None:
    assert not problems(subject)
    assert not problems(f"{subject}\n\nBecause.\n")


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("brokers: one that stops says who leads before its connections break", "'one' is no verb"),
        ("produce: who has no replica, or follows, looks at the batch first", "'who' is no verb"),
        ("aio: what is sent in one turn of the loop goes at its end", "'what' is no verb"),
        ("broker: a further log directory that fails is offline", "'a' is no verb"),
        ("tests: Kafka's Java tools look after three brokers", '"Kafka\'s" is no verb'),
        ("storage: logs that are appended, read, recovered and removed", "'logs' is a plural"),
        ("storage: adds a twin", "'adds' is a plural or a third person"),
        ("storage: added a twin", "'added' is a past form"),
        ("storage: adding a twin", "'adding' is a participle"),
        ("storage: add a twin.", "ends with a period"),
        ("Add a twin", "does not begin with an area"),
        ("storage:add a twin", "does not begin with an area"),
        ("storage: " + "add " * 17, "has 77 characters, at most 72"),
        ("", "is empty"),
        ("Merge branch 'stuck'", "does not say what the merge brings"),
        ("Merge branch 'ci' into integ", "does not say what the merge brings"),
        ("merge: main", "does not say what the merge brings"),
    ],
)
def test_a_bad_subject_is_refused_with_the_reason(subject: str, problem: str) -> None:
    (found,) = problems(subject)
    assert problem in found


@pytest.mark.parametrize(
    "message",
    [
        "merge: log directories that fail, and cordoned ones",
        "Merge branch 'stuck'\n\nA follower asks again after some milliseconds.",
        "Merge branch 'main' into docs",
    ],
)
def test_a_merge_needs_no_area(message: str) -> None:
    assert not problems(message, is_merge=True)


def test_a_body_needs_an_empty_line_before_it() -> None:
    assert problems("log: add it\nbecause") == ["no empty line is between the subject and the body"]


def test_comments_and_the_diff_of_git_do_not_count() -> None:
    assert not problems("# a template\n\nlog: add it\n# Please enter the message\n")
    assert not problems("log: add it\n\n# ------------------------ >8 ----\n# Cut.\ndiff")


@pytest.mark.parametrize(("subject", "status"), [("log: add it", 0), ("log: a thing", 1)])
def test_the_hook_refuses_a_bad_message(tmp_path: Path, subject: str, status: int) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text(subject)
    ran = subprocess.run(
        [ROOT / ".ci/hooks/commit-msg", message], check=False, capture_output=True, text=True
    )
    assert ran.returncode == status
    assert ("'a' is no verb" in ran.stderr) == bool(status)
