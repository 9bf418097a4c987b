"""The promises that a story has to keep: see `problems`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tests.queue.processes.events import (
    ACKED,
    GOT,
    PUT,
    REJECTED,
    RELEASED,
    TRYING,
    UNSURE,
    Event,
)


def problems(
    events: Sequence[Event],
    dead: Iterable[str],
    *,
    delivery_limit: int,
    owner_deaths: int,
    fetches_ahead: bool = False,
) -> list[str]:
    """Return the broken promises of a story, in which the queue was empty at the end.

    `dead` are the jobs of the dead letters, one entry a letter.

    - A job that was put was worked at least once.
    - It was acknowledged or is dead, or a worker that tried to settle it never learned the outcome.
    - No worker that asked after an answered acknowledgement or rejection got it. A worker that
      `fetches_ahead` may still have it from an owner that died, but cannot settle it.
    - Its delivery count stays within the limit. An owner that dies may forget one delivery.
    - A rejected job is a dead letter. A dead letter was rejected, or delivered up to the limit.
    A job may be there twice if a worker settled it by appending another record first, as delays,
    failures and rejections of `embedlog.Queue` do. Then each of its records has the limit.
    """
    by_job: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_job[event.job].append(event)
    letters = Counter(dead)
    found = []
    for job, story in sorted(by_job.items()):
        found += [
            f"{job} {problem}: {_told(story)}"
            for problem in _problems_of(
                story, letters[job], delivery_limit, owner_deaths, fetches_ahead=fetches_ahead
            )
        ]
    return found + [f"{job} is dead, and nobody saw it" for job in letters.keys() - by_job.keys()]


def _problems_of(
    story: list[Event], letters: int, limit: int, owner_deaths: int, *, fetches_ahead: bool
) -> list[str]:
    kinds = Counter(event.kind for event in story)
    found = []
    if kinds[PUT] and not kinds[GOT] and not letters:
        found.append("was never worked")
    # A worker that tried and was killed has written neither outcome.
    is_open = kinds[TRYING] > kinds[ACKED] + kinds[REJECTED] + kinds[RELEASED]
    is_settled = kinds[ACKED] or letters or kinds[UNSURE] or is_open
    if kinds[PUT] and not is_settled:
        found.append("was never settled")
    ends = [event.at_us for event in story if event.kind in (ACKED, REJECTED)]
    late = [event for event in story if event.kind == GOT and ends and event.at_us > min(ends)]
    is_copied = any(event.kind == TRYING and event.count for event in story)
    if fetches_ahead:
        late = [event for event in late if _is_settled_by(story, event)]
    if late and not is_copied:
        found.append("was worked after it was settled")
    deliveries = [event.count for event in story if event.kind == GOT]
    is_repeated = len(deliveries) > limit + owner_deaths and not is_copied
    if max(deliveries, default=0) > limit or is_repeated:
        found.append(f"was delivered {len(deliveries)} times, limit {limit}")
    if kinds[REJECTED] and not letters:
        found.append("was rejected and is not dead")
    tried = kinds[REJECTED] + kinds[UNSURE] + is_open + is_copied
    if letters and not tried and len(deliveries) + owner_deaths < limit:
        found.append("is dead without a reason")
    if letters > 1 + owner_deaths and not is_copied:
        found.append(f"is dead {letters} times")
    return found


def _is_settled_by(story: list[Event], got: Event) -> bool:
    """Return whether the worker of a delivery learned that it settled the job."""
    after = story[story.index(got) + 1 :]
    kinds = [event.kind for event in after if event.pid == got.pid and event.kind != TRYING]
    return kinds[:1] in ([ACKED], [REJECTED])


def _told(story: list[Event]) -> str:
    return ", ".join(f"{each.pid} {each.kind} {each.at_us} {each.count}" for each in story)
