"""Many threads and one coordinator: every operation sees the ones before it, and is answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import embedlog
from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.runtime.pending import Pending
from tests.support.offsets import commit, commit_codes, fetch, fetched

THREADS = 6
COMMITS = 40


def _together(work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_commits_of_many_threads_are_all_kept(tmp_path: Path, durability: str) -> None:
    with embedlog.open(tmp_path, durability=durability) as cluster:
        cluster.create_topic("t", THREADS)
        assert topics.ensure_internal_topic(cluster.broker().core, "__consumer_offsets")

        def ask(api_key: int, version: int, request: Any) -> Any:
            answer = cluster.broker().core.handle(RequestContext(api_key, version), request)
            if isinstance(answer, Pending):
                assert cluster.runtime.scheduler.wait(answer, 60_000)
                return answer.result()
            return answer

        def work(number: int) -> None:
            for offset in range(COMMITS):
                # One group for all threads, and one for each: both kinds of contention.
                for group_id in ("shared", f"own {number}"):
                    place = "t", number
                    response = ask(8, 9, commit(group_id, {place: offset}))
                    assert commit_codes(response) == {place: 0}
                    assert fetched(ask(9, 9, fetch(group_id, [place]))) == {place: offset}

        _together(work)
        expected = {("t", number): COMMITS - 1 for number in range(THREADS)}
        assert fetched(ask(9, 9, fetch("shared"))) == expected
    with embedlog.open(tmp_path, durability=durability) as cluster:
        assert fetched(ask(9, 9, fetch("shared"))) == expected
