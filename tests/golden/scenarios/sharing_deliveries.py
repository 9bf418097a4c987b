"""Which records a share fetch gets: both modes, limits, counts, locks, waits, log start,
transactions.
"""

from __future__ import annotations

from tests.golden.requests import creation, make_topic, produce
from tests.golden.run import Run, scenario_on
from tests.golden.sharing_requests import (
    ACCEPT,
    REJECT,
    RELEASE,
    Sharer,
    begin_state,
    configure,
    fill,
    read_state,
    read_summary,
)
from tests.golden.transaction_requests import batch, began, ended, settle, warm_up_transactions
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

STRICT = 1


def _prepared(
    run: Run, *sizes: int, **settings: str
) -> tuple[Sharer, tuple[tuple[str, bytes], int], str]:
    topic = make_topic(run)
    group = run.group()
    if settings:
        configure(run, group, **settings)
    begin_state(run, group, topic)
    fill(run, topic, *sizes)
    return Sharer(run, group), (topic, 0), group


@scenario_on("sharing")
def share_batch_optimized(run: Run) -> None:
    one, place, _ = _prepared(run, 5, 5, 5, 5, 5, 5, 5)
    one.fetch("MaxRecords 1", place, max_records=1)
    one.fetch("MaxRecords 6, BatchSize 1", max_records=6, batch_size=1)
    one.fetch("MaxRecords 10, BatchSize 6", max_records=10, batch_size=6)
    one.fetch("BatchSize 0", max_records=1, batch_size=0)
    one.fetch("the rest", batch_size=500)
    one.fetch("nothing is left", max_wait_ms=0)
    one.acknowledge("release parts", {place: [(1, 3, [RELEASE]), (8, 11, [RELEASE])]})
    one.fetch("the parts, MaxRecords 1", max_records=1)
    one.fetch("the parts", max_wait_ms=500)


@scenario_on("sharing")
def share_record_limit(run: Run) -> None:
    one, place, _ = _prepared(run, 5, 5, 5, 5)
    one.fetch("MaxRecords 3", place, max_records=3, share_acquire_mode=STRICT)
    one.fetch("MaxRecords 3 again", max_records=3, share_acquire_mode=STRICT)
    one.fetch("MaxRecords 7", max_records=7, share_acquire_mode=STRICT)
    one.fetch("MaxRecords 1", max_records=1, share_acquire_mode=STRICT)
    one.fetch("the other mode takes the rest", max_records=1)
    one.acknowledge("release some", {place: [(2, 6, [RELEASE])]})
    one.fetch("two of them", max_records=2, share_acquire_mode=STRICT)
    one.fetch("the rest", max_records=20, share_acquire_mode=STRICT)


@scenario_on("sharing")
def share_max_bytes(run: Run) -> None:
    one, place, _ = _prepared(run, 5, 5, 5)
    one.fetch("one byte: one batch", place, max_bytes=1)
    one.fetch("room for the rest", max_bytes=1000)
    one.fetch("nothing is left", max_wait_ms=100)


@scenario_on("sharing")
def share_partitions_of_one_fetch(run: Run) -> None:
    topic = make_topic(run, partitions=3)
    group = run.group()
    begin_state(run, group, topic, 0, 1, 2)
    places = [(topic, number) for number in range(3)]
    one = Sharer(run, group)
    one.fetch("open with empty partitions", *places, max_wait_ms=1000)
    for number in range(3):
        fill(run, topic, 2, 2, 2, partition=number)
    one.fetch("all of them", max_wait_ms=500)
    one.fetch("nothing", max_wait_ms=0)
    accepted = {place: [(0, 1, [ACCEPT]), (2, 3, [RELEASE])] for place in places}
    one.acknowledge("of all at once", accepted)
    one.fetch("the released ones", max_wait_ms=500)


def _redeliver(run: Run, limit: int, rounds: int) -> None:
    one, place, group = _prepared(run, 10, share_delivery_count_limit=str(limit))
    for number in range(rounds):
        answer = one.fetch(f"round {number}", place, max_wait_ms=100)
        rows = [p for t in answer.responses for p in t.partitions]
        acquired = [(r.first_offset, r.last_offset) for p in rows for r in p.acquired_records]
        if not acquired:
            break
        released = {place: [(first, last, [RELEASE]) for first, last in acquired]}
        one.acknowledge("release", released, keep=False)
    run.send(read_state(group, place[0]), 0, "the end")
    run.send(read_summary(group, place[0]), 1, "the end")


@scenario_on("sharing")
def share_redelivery_limit_5(run: Run) -> None:
    _redeliver(run, 5, 18)


@scenario_on("sharing")
def share_redelivery_limit_3(run: Run) -> None:
    _redeliver(run, 3, 15)


@scenario_on("sharing")
def share_redelivery_limit_2(run: Run) -> None:
    _redeliver(run, 2, 5)


@scenario_on("sharing")
def share_redelivery_limit_10(run: Run) -> None:
    _redeliver(run, 10, 36)


@scenario_on("sharing")
def share_redelivery_beside_fresh_records(run: Run) -> None:
    one, place, _ = _prepared(run, 4, 4, share_delivery_count_limit="3")
    for number in range(2):
        one.fetch(f"round {number}", place, max_records=4, max_wait_ms=300)
        one.acknowledge("release", {place: [(0, 3, [RELEASE])]}, keep=False)
    for number in range(5):
        one.fetch(f"the bad ones alone {number}", max_wait_ms=300)
    one.fetch("then the fresh ones", max_wait_ms=300)


@scenario_on("sharing")
def share_record_lock_limit(run: Run) -> None:
    sizes = (30, 30, 30, 30, 30)
    one, place, _ = _prepared(run, *sizes, share_partition_max_record_locks="100")
    for number in range(3):
        one.fetch(f"batch {number}", place, max_records=30, keep=False)
    one.fetch("the last one may overshoot", max_records=500)
    one.fetch("the limit is reached", max_wait_ms=100)
    one.acknowledge("release in the window", {place: [(30, 59, [RELEASE])]})
    one.fetch("they come again, nothing beyond", max_wait_ms=300)
    one.acknowledge("accept the first", {place: [(0, 29, [ACCEPT])]})
    one.fetch("the window has moved", max_wait_ms=300)


@scenario_on("sharing")
def share_record_lock_limit_strict(run: Run) -> None:
    one, place, _ = _prepared(run, 250, share_partition_max_record_locks="100")
    one.fetch("100 of them", place, share_acquire_mode=STRICT)
    one.fetch("within the window", share_acquire_mode=STRICT, max_wait_ms=100)
    one.acknowledge("accept some", {place: [(0, 49, [ACCEPT])]})
    one.fetch("and then", share_acquire_mode=STRICT, max_wait_ms=100)


@scenario_on("sharing")
def share_locks_expire(run: Run) -> None:
    one, place, group = _prepared(
        run, 4, share_record_lock_duration_ms="1000", share_delivery_count_limit="2"
    )
    two = Sharer(run, group, "two", on="b")
    one.fetch("lock", place)
    two.fetch("open", place, max_wait_ms=0)
    two.begin_fetch("wait for the expiry", max_wait_ms=5000)
    two.finish()
    one.acknowledge("too late", {place: [(0, 3, [ACCEPT])]})
    run.send(read_state(group, place[0]), 0, "expiry is stored")
    run.let_pass(1300)
    one.fetch("the second expiry was the last", max_wait_ms=100)
    run.send(read_state(group, place[0]), 0, "archived")
    run.send(read_summary(group, place[0]), 1, "archived")


@scenario_on("sharing")
def share_fetch_waits(run: Run) -> None:
    one, place, group = _prepared(run, 2)
    one.on = "a"
    two = Sharer(run, group, "two")
    one.fetch("load", place)
    one.begin_fetch("wait for a record", max_wait_ms=8000)
    fill(run, place[0], 1)
    one.finish()
    one.begin_fetch("wait for many bytes", max_wait_ms=1500, min_bytes=500)
    fill(run, place[0], 1)
    run.waits("one record is not enough", on="a")
    run.finish(on="a", keep=False)
    one.fetch("drain", max_wait_ms=500, keep=False)  # Kafka's answer was with or without it
    two.open(place)
    one.begin_fetch("wait for the start to move", max_wait_ms=1000)
    one.finish()
    one.begin_fetch("wait, and nothing comes", max_wait_ms=700)
    one.finish()
    one.fetch("no wait", max_wait_ms=0)


@scenario_on("sharing")
def share_log_start(run: Run) -> None:
    one, place, group = _prepared(run, 5, 5, 5)
    topic = place[0]
    one.fetch("lock the first", place, max_records=1)
    row = DeleteRecordsPartition(partition_index=0, offset=7)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic[0], partitions=[row])], timeout_ms=5000
    )
    run.setup(request, 2)
    one.fetch("the log begins later", max_wait_ms=300)
    one.fetch("then the records", max_wait_ms=300)
    one.acknowledge("below the start", {place: [(0, 4, [ACCEPT])]})
    one.acknowledge("what is left", {place: [(7, 14, [ACCEPT])]})
    run.send(read_summary(group, topic), 1, "the end")


@scenario_on("sharing")
def share_reset_earliest(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    configure(run, group, share_auto_offset_reset="earliest")
    begin_state(run, group, topic, start=-1)
    fill(run, topic, 2)
    one = Sharer(run, group)
    one.fetch("from the begin", (topic, 0))
    run.send(read_summary(group, topic), 1, "nothing is stored")
    one.acknowledge("accept", {(topic, 0): [(0, 1, [ACCEPT])]})
    run.send(read_summary(group, topic), 1, "now it is")


@scenario_on("sharing")
def share_reset_latest(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic, start=-1)
    fill(run, topic, 2)
    one = Sharer(run, group)
    one.fetch("nothing yet", (topic, 0), max_wait_ms=1000)
    fill(run, topic, 3)
    one.fetch("from the end", max_wait_ms=1000)


@scenario_on("sharing")
def share_reset_by_duration(run: Run) -> None:
    topic = make_topic(run)
    group, other = run.group(), run.group("other")
    configure(run, group, share_auto_offset_reset="by_duration:PT1H")
    configure(run, other, share_auto_offset_reset="by_duration:P10000D")
    begin_state(run, group, topic, start=-1)
    begin_state(run, other, topic, start=-1)
    fill(run, topic, 2)
    one = Sharer(run, other)
    one.fetch("older records", (topic, 0), max_wait_ms=1000)
    two = Sharer(run, group)
    two.fetch("every record is older", (topic, 0), max_wait_ms=500)
    two.fetch("the error comes again", max_wait_ms=100)


@scenario_on("sharing")
def share_transactions(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run)
    loose, strict = run.group("loose"), run.group("strict")
    configure(run, strict, share_isolation_level="read_committed")
    for group in (loose, strict):
        begin_state(run, group, topic)
    fill(run, topic, 1)
    name = run.group("id")
    producer = began(run, name, (topic[0], 0))
    run.setup(produce(topic, 9, batch(producer, b"x", b"y"), transactional_id=name), 9)
    one, two = Sharer(run, loose), Sharer(run, strict)
    one.fetch("read_uncommitted, open transaction", (topic, 0))
    two.fetch("read_committed, open transaction", (topic, 0), max_wait_ms=500)
    ended(run, name, producer, commit=False)
    settle(run, name)
    fill(run, topic, 1)
    one.fetch("read_uncommitted, aborted", max_wait_ms=500)
    run.let_pass(500)
    two.fetch("read_committed, aborted", max_wait_ms=2000)
    two.fetch("read_committed, once more", max_wait_ms=300)
    two.acknowledge("accept data and marker", {(topic, 0): [(0, 0, [1]), (3, 4, [0, 1])]})
    run.send(read_state(strict, topic), 0, "the end")
    run.send(read_summary(strict, topic), 1, "the end")


@scenario_on("sharing")
def share_state_of_loading(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    fill(run, topic, 10)
    one = Sharer(run, group, on="a")
    one.fetch("lock", (topic, 0))
    one.acknowledge("parts", {(topic, 0): [(1, 2, [ACCEPT]), (5, 6, [RELEASE])]})
    run._hang_up("a")
    run.let_pass(800)
    run.send(read_state(group, topic), 0, "after the disconnect")
    two = Sharer(run, group, "two", on="b")
    two.fetch("loaded again", (topic, 0))
    two.acknowledge("accept all", {(topic, 0): [(0, 0, [1]), (3, 9, [1])]})
    run.send(read_summary(group, topic), 1, "the end")


@scenario_on("sharing")
def share_state_begins_inside(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic, start=7)
    fill(run, topic, 5, 5)
    one = Sharer(run, group)
    one.fetch("the batch that holds the start", (topic, 0))
    one.acknowledge("the whole batch", {(topic, 0): [(5, 9, [ACCEPT])]})
    beyond = run.group("beyond")
    begin_state(run, beyond, topic, start=50)
    two = Sharer(run, beyond)
    two.fetch("beyond the end", (topic, 0), max_wait_ms=500)
    two.fetch("again", max_wait_ms=100)


@scenario_on("sharing")
def share_state_changes_under_the_leader(run: Run) -> None:
    one, place, group = _prepared(run, 6)
    one.fetch("lock", place)
    begin_state(run, group, place[0], start=2, epoch=5)
    one.acknowledge("fenced by a higher state epoch", {place: [(0, 1, [ACCEPT])]})
    one.acknowledge("the partition is gone", {place: [(0, 1, [ACCEPT])]})
    one.fetch("loaded again", max_wait_ms=1000)
    one.acknowledge("accept", {place: [(2, 5, [ACCEPT])]})


@scenario_on("sharing")
def share_dead_letters(run: Run) -> None:
    group = run.group()
    dead = "dlq." + run.topic("dead")
    run.setup(
        creation(dead, partitions=2, configs={"errors.deadletterqueue.group.enable": "true"}), 7
    )
    topic = make_topic(run)
    configure(run, group, errors_deadletterqueue_topic_name=dead, share_delivery_count_limit="2")
    begin_state(run, group, topic)
    fill(run, topic, 4)
    one = Sharer(run, group)
    place = (topic, 0)
    one.fetch("lock", place)
    one.acknowledge("reject one", {place: [(0, 1, [REJECT, RELEASE])]})
    run.let_pass(2500)
    run.send(read_state(group, topic), 0, "archived after the dead letter")
    one.fetch("the last delivery", max_wait_ms=300)
    one.acknowledge("release it once more", {place: [(1, 1, [RELEASE])]})
    run.let_pass(2500)
    run.send(read_summary(group, topic), 1, "all archived")
    from tests.golden.requests import fetch as plain_fetch

    run.send(plain_fetch((dead, b""), 12), 12, "the dead letters")
    one.acknowledge("the rest", {place: [(2, 3, [ACCEPT])]})
