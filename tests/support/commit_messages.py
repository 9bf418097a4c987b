"""The rules of commit messages. `.ci/hooks/commit-msg` runs this file; it needs no package.

    storage: cut a torn batch before the indexes are built

    The body says why, and comes after an empty line.

A wrong refusal costs more than a missed mistake: it stops somebody who has done nothing wrong. The
check of the imperative therefore refuses only words that no imperative begins with.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUBJECT_LENGTH_MAX = 72

_AREAS = re.compile(r"[\w.`/-]+(?:, ?[\w.`/-]+)*: (?=\S)")
_BARE_MERGE = re.compile(r"merge:? \S+$|Merge (?:remote-tracking )?(?:branch|tag|commit) '[^']*'")
_UPDATE = re.compile(r"Merge (?:remote-tracking )?branch '(?:\w+/)?main' into ")
"""Git writes this when a branch takes over main: it says all that there is to say."""
_GENERATED = ("Revert ", "fixup! ", "squash! ", "amend! ")

_DESCRIPTIONS = """
a an the this that these those each every all any some no both several many few fewer most one two
three four five another other such more less
i we you he she it they its our your their his her who whom whose whoever what whatever which
whichever nobody nothing somebody something everybody everything
when whenever where wherever if while as because although of in on at by for from to with without
after before behind between over under until also there here not now only
"""
NO_VERBS = frozenset(_DESCRIPTIONS.split())
"""First words of a description: articles and numbers, pronouns, words that begin a clause."""

_IMPERATIVES_IN_S = {"alias", "bias", "focus"}
_IMPERATIVES_IN_ED = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"}
_IMPERATIVES_IN_ING = {"bring", "fling", "ping", "ring", "sing", "string", "swing"}


def problems(message: str, *, is_merge: bool = False) -> list[str]:
    """Return one sentence for each rule that a commit message breaks."""
    lines = _without_comments(message)
    subject = lines[0] if lines else ""
    found = []
    if not subject.strip():
        return ["the subject is empty"]
    if len(subject) > SUBJECT_LENGTH_MAX:
        found.append(f"the subject has {len(subject)} characters, at most {SUBJECT_LENGTH_MAX}")
    if subject.endswith("."):
        found.append("the subject ends with a period")
    if len(lines) > 1 and lines[1].strip():
        found.append("no empty line is between the subject and the body")
    has_body = any(line.strip() for line in lines[1:])
    if is_merge or subject.startswith(("Merge ", "merge: ")):
        if _BARE_MERGE.match(subject) and not _UPDATE.match(subject) and not has_body:
            found.append(f"{subject!r} does not say what the merge brings: add it, or a body")
    elif not subject.startswith(_GENERATED):
        found += _problems_of_subject(subject)
    return found


def _problems_of_subject(subject: str) -> list[str]:
    areas = _AREAS.match(subject)
    if areas is None:
        return ["the subject does not begin with an area, as in 'storage: cut a torn batch'"]
    word = re.split(r"[\s,;:]", subject[areas.end() :], maxsplit=1)[0]
    reason = _no_imperative(word)
    return [f"{word!r} is {reason}: begin with an imperative, as in 'cut'"] if reason else []


def _no_imperative(word: str) -> str:
    """Return why this first word cannot be an imperative; empty if it may be one."""
    lowered = word.lower()
    if lowered in NO_VERBS or lowered.endswith("'s"):
        return "no verb"
    if not lowered.isalpha():
        return ""  # `a-hyphened` verb, or a name in backticks
    if lowered.endswith("s") and not lowered.endswith("ss") and lowered not in _IMPERATIVES_IN_S:
        return "a plural or a third person"
    if lowered.endswith("ed") and lowered not in _IMPERATIVES_IN_ED:
        return "a past form"
    if lowered.endswith("ing") and lowered not in _IMPERATIVES_IN_ING:
        return "a participle or a noun"
    return ""


def _without_comments(message: str) -> list[str]:
    """Return the lines that git keeps of the file that it passes to a hook."""
    kept, _scissors, _diff = message.partition("\n# ------------------------ >8")
    lines = [line for line in kept.splitlines() if not line.startswith("#")]
    while lines and not lines[0].strip():
        del lines[0]
    return lines


def main(path: str) -> int:
    """Print the problems of the message in a file; return the exit status for git."""
    found = problems(Path(path).read_text(encoding="utf-8"))
    for problem in found:
        print(f"commit message: {problem}", file=sys.stderr)
    if found:
        print("CONTRIBUTING.md has the rules and examples", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
