"""Members in several threads: every record is accepted by one of them, in real time."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import embedlog
from embedlog.broker.context import RequestContext
from embedlog.runtime.pending import Pending
from tests.golden.sharing_requests import ACCEPT, RELEASE, acknowledge_request, fetch_request
from tests.sharing.memory_broker import give_state
from wire.api_keys import ApiKey
from wire.records.encode.builder import build_batch

GROUP = "workers"
MEMBERS = 4
BATCHES = 30
BATCH = 10


def test_members_in_threads_share_the_records() -> None:
    with embedlog.open() as cluster:
        core: Any = cluster.broker().core
        state = give_state(core)
        made = cluster.create_topic("t")
        state.initialize(GROUP, (made.topic_id, 0))
        place = (("t", made.topic_id), 0)
        accepted: Counter[int] = Counter()
        failures: list[str] = []
        lock = threading.Lock()

        def ask(key: int, request: Any) -> Any:
            answer = core.handle(RequestContext(key, 2), request)
            if isinstance(answer, Pending):
                assert cluster.runtime.scheduler.wait(answer, 20_000)
                return answer.result()
            return answer

        def work(member: str) -> None:
            epoch = 0
            while sum(accepted.values()) < BATCHES * BATCH:
                places = [] if epoch else [place]
                request = fetch_request(
                    GROUP, member, epoch, *places, max_wait_ms=50, max_records=7, batch_size=3
                )
                response = ask(ApiKey.SHARE_FETCH, request)
                rows = [r for t in response.responses for p in t.partitions
                        for r in p.acquired_records]  # fmt: skip
                epoch += 1
                for row in rows:
                    first, last = row.first_offset, row.last_offset
                    # The first delivery of each third record is given back.
                    types = [
                        RELEASE if row.delivery_count == 1 and offset % 3 == 0 else ACCEPT
                        for offset in range(first, last + 1)
                    ]
                    told = {place: [(first, last, types)]}
                    answer = ask(
                        ApiKey.SHARE_ACKNOWLEDGE, acknowledge_request(GROUP, member, epoch, told)
                    )
                    epoch += 1
                    code = answer.responses[0].partitions[0].error_code
                    with lock:
                        if code:
                            failures.append(f"{member} {first}-{last}: {code}")
                        accepted.update(
                            first + index for index, kind in enumerate(types) if kind == ACCEPT
                        )

        threads = [threading.Thread(target=work, args=(f"m{n}",)) for n in range(MEMBERS)]
        for thread in threads:
            thread.start()
        partition = core.replica_manager.partition("t", 0)
        for _ in range(BATCHES):
            batch = build_batch([b"v"] * BATCH, timestamps=1_700_000_000_000)
            core.replica_manager.append(partition, batch, acks=-1)
        for thread in threads:
            thread.join(30)
        assert not failures
        assert accepted == Counter(range(BATCHES * BATCH))
        loaded = core.sharing.find(GROUP, (made.topic_id, 0))
        assert loaded.window.start_offset == BATCHES * BATCH
