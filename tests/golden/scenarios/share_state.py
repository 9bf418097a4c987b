"""The state of share partitions: look-ups, checks of each API, epochs, records, deleted topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.common import uuid_to_text
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario, scenario_on
from tests.golden.scenarios.configs import TOPIC, described
from tests.golden.scenarios.features import SAFE, UNSAFE, UPGRADE, update
from tests.golden.share_state_requests import (
    ACKNOWLEDGED,
    AVAILABLE,
    STATE_TOPIC,
    delete,
    initialize,
    key_of,
    look_up,
    read,
    stored,
    summary,
    warm_up,
    write,
)
from wire.schemas import delete_share_group_state as deletes
from wire.schemas import initialize_share_group_state as initializes
from wire.schemas import read_share_group_state as reads
from wire.schemas import read_share_group_state_summary as summaries
from wire.schemas import write_share_group_state as writes
from wire.schemas.api_versions import ApiVersionsRequest
from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

UNKNOWN_ID = bytes(range(100, 116))
Ask = Callable[..., Any]
APIS: tuple[tuple[str, Ask, int], ...] = (
    ("initialize", initialize, 0),
    ("read", read, 0),
    ("write", write, 1),
    ("delete", delete, 0),
    ("summary", summary, 1),
)


@scenario
def share_coordinator_look_ups(run: Run) -> None:
    topic = make_topic(run)
    text = uuid_to_text(topic[1])
    good = key_of("g", topic)
    run.until(lambda answer: answer.coordinators[0].error_code == 0, look_up(good), 6, keep=False)
    for version in (4, 5, 6):
        run.send(look_up(good), version, "a share partition")
        run.send(look_up(), version, "no keys")
        run.send(look_up(good, good, "g"), version, "the same twice, and a wrong one")
    for version in (1, 2, 3):
        run.send(FindCoordinatorRequest(key=good, key_type=2), version, "a share partition")
    for note, key in (
        ("colons in the group", f"a:b::{text}:0"),
        ("no group", f":{text}:0"),
        ("a blank group", f" :{text}:0"),
        ("no partition", f"g:{text}"),
        ("an empty partition", f"g:{text}:"),
        ("a negative partition", f"g:{text}:-1"),
        ("a signed partition", f"g:{text}:+1"),
        ("a blank partition", f"g:{text}: 1"),
        ("a word for partition", f"g:{text}:x"),
        ("a fraction for partition", f"g:{text}:1.0"),
        ("a partition of another number", f"g:{text}:99"),
        ("the largest partition", f"g:{text}:2147483647"),
        ("a partition beyond the largest", f"g:{text}:2147483648"),
        ("zeros before the partition", f"g:{text}:007"),
        ("no topic", "g::0"),
        ("a name for topic", f"g:{topic[0]}:0"),
        ("a short id", "g:AAAAAAAAAAAAAAAAAAAAA:0"),
        ("a long id", "g:AAAAAAAAAAAAAAAAAAAAAAA:0"),
        ("an id with padding", "g:AAAAAAAAAAAAAAAAAAAAAA==:0"),
        ("the zero id", "g:AAAAAAAAAAAAAAAAAAAAAA:0"),
        ("an unknown id", f"g:{uuid_to_text(UNKNOWN_ID)}:0"),
        ("an id in another alphabet", "g:++++++++++++++++++++++:0"),
        ("only colons", "::"),
        ("nothing", ""),
    ):
        run.send(look_up(key), 6, note)


@scenario_on("share state")
def share_state_checks(run: Run) -> None:
    topic, group = make_topic(run, partitions=2), run.group()
    warm_up(run, topic)
    run.setup(initialize(group, topic, state_epoch=5), 0)
    run.setup(read(group, topic, leader_epoch=4), 0)
    for name, ask, version in APIS:
        for partition in (-1, 1, 2, 99):
            run.send(ask(group, topic, partition=partition), version, f"partition {partition}")
            if name == "initialize" and partition == 1:
                run.setup(delete(group, topic, partition=1), 0)
        run.send(ask(group, UNKNOWN_ID), version, "an unknown topic")
        run.send(ask(group, bytes(16)), version, "the zero id")
        run.send(ask("", topic), version, "no group")
        run.send(ask(" ", topic, partition=1), version, "a blank group")
        if name == "initialize":
            run.setup(delete(" ", topic, partition=1), 0)
    for epoch in (-1, 0, 3, 4, 5, 2**31 - 1):
        for name, ask, version in APIS[1:3]:
            more = {"state_epoch": 5} if name == "write" else {}
            request = ask(group, topic, leader_epoch=epoch, **more)
            run.send(request, version, f"leader epoch {epoch}")
            run.send(summary(group, topic), 1, f"after {name} of leader epoch {epoch}")
        run.send(summary(group, topic, leader_epoch=epoch), 1, f"leader epoch {epoch}")
    for partition, state_epoch, leader_epoch in (
        *((-1, -1, -1), (0, -1, -1), (0, -1, 0), (0, 0, -1), (0, 0, 0), (1, -1, 0), (9, 0, 0)),
        *((0, 4, 2**31 - 1), (0, 6, 0), (0, -1, 2**31 - 1)),
    ):
        note = f"{partition}, state epoch {state_epoch}, leader epoch {leader_epoch}"
        request = write(
            group, topic, partition=partition, state_epoch=state_epoch, leader_epoch=leader_epoch
        )
        run.send(request, 1, note)
        if partition < 9:
            request = initialize(group, topic, partition=partition, state_epoch=state_epoch)
            run.send(request, 0, note)
    for partition in (-1, 2):
        for state_epoch in (-1, 0):
            request = initialize(group, topic, partition=partition, state_epoch=state_epoch)
            run.send(request, 0, f"{partition}, state epoch {state_epoch}")
    other = run.group("unknown")
    for epoch in (-1, 0, 9):
        for _, ask, version in (APIS[1], APIS[2], APIS[4]):
            run.send(ask(other, topic, leader_epoch=epoch), version, f"unknown group, {epoch}")
    for partition in (-1, 5):
        run.send(read(other, topic, partition=partition, leader_epoch=-1), 0, f"{partition}, -1")
        run.send(write(other, topic, partition=partition, leader_epoch=-1), 1, f"{partition}, -1")


@scenario_on("share state")
def share_state_of_several(run: Run) -> None:
    first, second = make_topic(run, "a", partitions=3), make_topic(run, "b", partitions=2)
    warm_up(run, first)
    group = run.group()
    places = ((first[1], (0, 1, -1)), (UNKNOWN_ID, (0, 1)), (second[1], (1, 7)))

    def each(data: Any, part: Any, fields: dict[str, Any]) -> list[Any]:
        return [
            data(topic_id=topic_id, partitions=[part(partition=n, **fields) for n in numbers])
            for topic_id, numbers in places
        ]

    kinds: tuple[tuple[Any, Any, Any, dict[str, Any], int], ...] = (
        (initializes.InitializeShareGroupStateRequest, initializes.InitializeStateData,
         initializes.PartitionData, {"state_epoch": 2, "start_offset": 7}, 0),
        (summaries.ReadShareGroupStateSummaryRequest, summaries.ReadStateSummaryData,
         summaries.PartitionData, {"leader_epoch": 0}, 1),
        (writes.WriteShareGroupStateRequest, writes.WriteStateData, writes.PartitionData,
         {"state_epoch": 2, "leader_epoch": 0, "start_offset": 8, "state_batches": [
             writes.StateBatch(first_offset=8, last_offset=9, delivery_state=0, delivery_count=1),
         ]}, 1),
        (reads.ReadShareGroupStateRequest, reads.ReadStateData, reads.PartitionData,
         {"leader_epoch": 1}, 0),
        (deletes.DeleteShareGroupStateRequest, deletes.DeleteStateData, deletes.PartitionData,
         {}, 0),
    )  # fmt: skip
    for request, data, part, fields, version in kinds:
        row = part(partition=0, **fields)
        run.send(request(group_id=group, topics=[]), version, "no topics")
        empty = data(topic_id=first[1], partitions=[])
        run.send(request(group_id=group, topics=[empty]), version, "a topic without partitions")
        mixed = [empty, data(topic_id=second[1], partitions=[row])]
        run.send(request(group_id=group, topics=mixed), version, "the first without partitions")
        mixed.reverse()
        run.send(request(group_id=group, topics=mixed), version, "the last without partitions")
        nobody = [data(topic_id=first[1], partitions=[row])]
        run.send(request(group_id="", topics=nobody), version, "no group")
        run.send(request(group_id=group, topics=each(data, part, fields)), version, "several")
        run.send(summary(group, first, partition=1), 1, f"after {request.__name__}")
        rows = [part(partition=number, **fields) for number in (2, 2, 0)]
        twice = [data(topic_id=first[1], partitions=rows)]
        run.send(request(group_id=group, topics=twice), version, "a partition twice")
        twice = [*twice, data(topic_id=first[1], partitions=[part(partition=1, **fields)])]
        run.send(request(group_id=group, topics=twice), version, "a topic twice")
        twice[1] = data(topic_id=first[1], partitions=[part(partition=2, **fields)])
        run.send(request(group_id=group, topics=twice), version, "a topic and its partition twice")
    run.setup(initialize(group, first), 0)
    both = [
        writes.PartitionData(
            partition=0,
            state_epoch=1,
            leader_epoch=0,
            start_offset=-1,
            state_batches=[
                writes.StateBatch(
                    first_offset=offset,
                    last_offset=offset + 1,
                    delivery_state=ACKNOWLEDGED,
                    delivery_count=1,
                )
            ],
        )
        for offset in (3, 9)
    ]
    data = writes.WriteStateData(topic_id=first[1], partitions=both)
    run.send(writes.WriteShareGroupStateRequest(group_id=group, topics=[data]), 1, "two writes")
    run.send(read(group, first), 0, "two writes")


@scenario_on("share state")
def share_state_epochs(run: Run) -> None:
    topic, group = make_topic(run, partitions=2), run.group()
    warm_up(run, topic)

    def look(note: str) -> None:
        run.send(summary(group, topic), 1, note)

    for epoch, start in ((3, -1), (3, 10), (2, 11), (0, 12), (-1, 13), (4, 14), (4, -1), (4, -2)):
        run.send(initialize(group, topic, state_epoch=epoch, start=start), 0, f"{epoch} at {start}")
        look(f"initialized with {epoch} at {start}")
    run.setup(initialize(group, topic, state_epoch=4, start=20), 0)
    for epoch in (3, 4, 5, 4, -1):
        request = write(group, topic, (20 + epoch, 20 + epoch, 0, 1), state_epoch=epoch)
        run.send(request, 1, f"state epoch {epoch}")
        look(f"written with state epoch {epoch}")
    for epoch in (2, 1, 2, 3):
        run.send(read(group, topic, leader_epoch=epoch), 0, f"leader epoch {epoch}")
        look(f"read with leader epoch {epoch}")
    for epoch in (2, 3, 4, 3):
        request = write(group, topic, (30, 30, 0, epoch), state_epoch=4, leader_epoch=epoch)
        run.send(request, 1, f"leader epoch {epoch}")
        look(f"written with leader epoch {epoch}")
    run.send(initialize(group, topic, state_epoch=5, start=1), 0, "anew")
    look("initialized anew")
    for epoch in (2, 3, 4):
        run.send(read(group, topic, leader_epoch=epoch), 0, f"anew, leader epoch {epoch}")
        look(f"anew, read with leader epoch {epoch}")
    run.send(delete(group, topic), 0, "gone")
    run.send(delete(group, topic), 0, "gone, again")
    look("gone")
    run.send(read(group, topic, leader_epoch=9), 0, "gone")
    run.send(initialize(group, topic, state_epoch=1, start=2), 0, "lower epoch after the end")
    look("lower epoch after the end")
    run.send(read(group, topic, leader_epoch=0), 0, "lower leader epoch after the end")


@scenario_on("share state")
def share_state_starts_and_counts(run: Run) -> None:
    topic = make_topic(run)
    warm_up(run, topic)
    walks: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = (
        (-1, ((-1, -1), (-1, 3), (0, -1), (0, 4), (0, 2), (-1, 1), (5, 0), (5, 7), (3, 9))),
        (10, ((-1, -1), (-1, 3), (9, 5), (10, 5), (10, 4), (11, -1), (12, 2), (12, -1), (-2, 6))),
        (0, ((0, 0), (0, 5), (3, 2), (2, 9), (1 << 40, 1), (1 << 40, 2**31 - 1), (-5, 1))),
    )
    for number, (begin, steps) in enumerate(walks):
        group = run.group(f"w{number}")
        run.send(initialize(group, topic, start=begin), 0, f"walk {number} begins at {begin}")
        for start, complete in steps:
            request = write(group, topic, start=start, complete=complete)
            run.send(request, 1, f"walk {number}: start {start}, complete {complete}")
            run.send(summary(group, topic), 1, f"walk {number}: start {start}, {complete}")
            run.send(summary(group, topic), 0, f"walk {number}: start {start}, {complete}")
    group = run.group("older")
    run.setup(initialize(group, topic), 0)
    request = write(group, topic, (0, 4, ACKNOWLEDGED, 1), start=0, complete=5)
    run.send(request, 1, "with a count")
    run.send(summary(group, topic), 1, "with a count")
    run.send(write(group, topic, (6, 7, AVAILABLE, 1), start=5), 0, "version 0, without a count")
    run.send(summary(group, topic), 1, "version 0, without a count")
    run.send(read(group, topic), 0, "version 0, without a count")


@scenario_on("share state")
def share_state_records(run: Run) -> None:
    topic, group = make_topic(run, partitions=2), run.group()
    warm_up(run, topic)

    def look(note: str) -> None:
        run.keep(note, stored(run, [group]))

    run.setup(initialize(group, topic, state_epoch=2, start=-1), 0)
    run.setup(initialize(group, topic, partition=1, state_epoch=2, start=5), 0)
    look("initialized")
    run.setup(read(group, topic, leader_epoch=3), 0)
    run.setup(read(group, topic, leader_epoch=3), 0)
    look("read by a leader")
    for first in range(0, 60, 10):
        batch = (first, first + 9, ACKNOWLEDGED, 1)
        request = write(
            group, topic, batch, (first + 10, first + 19, AVAILABLE, 1),
            state_epoch=2, leader_epoch=3, start=first, complete=first,
        )  # fmt: skip
        run.send(request, 1, f"at {first}")
    look("snapshots after each three updates")
    for epoch in range(4, 9):
        run.send(read(group, topic, leader_epoch=epoch), 0, f"leader epoch {epoch}")
    look("read by five leaders")
    run.setup(initialize(group, topic, state_epoch=3, start=0), 0)
    run.setup(delete(group, topic, partition=1), 0)
    run.setup(delete(group, topic, partition=1), 0)
    look("anew, and deleted")
    run.setup(initialize(group, topic, partition=1, state_epoch=1, start=3), 0)
    look("anew after the end")
    group = run.group("merged")
    run.setup(initialize(group, topic, start=10), 0)
    own = (10, 14, 0, 1), (15, 19, 0, 1), (18, 25, 2, 1), (40, 44, 0, 1), (30, 34, 0, 1)
    for start in (-1, 12, 11):
        run.send(write(group, topic, *own, start=start, complete=start), 1, f"own, {start}")
        run.keep(f"what overlaps inside one write, {start}", stored(run, [group]))


@scenario_on("share state")
def share_state_of_deleted_topics(run: Run) -> None:
    kept, gone, group = make_topic(run, "kept"), make_topic(run, "gone"), run.group()
    warm_up(run, kept)
    for topic in (kept, gone):
        run.setup(initialize(group, topic, state_epoch=4, start=1), 0)
        run.setup(write(group, topic, (1, 5, ACKNOWLEDGED, 1), state_epoch=4, start=1), 1)
    state = DeleteTopicState(name=None, topic_id=gone[1])
    run.setup(DeleteTopicsRequest(topics=[state], timeout_ms=15000), 6)
    run.until(
        lambda answer: answer.results[0].partitions[0].error_code == 42,
        read(group, gone), 0, "the topic is gone",
    )  # fmt: skip
    for _, ask, version in APIS:
        run.send(ask(group, gone), version, "the topic is gone")
    for _, ask, version in APIS[1:3]:
        run.send(ask(group, kept, **({"state_epoch": 4} if ask is write else {})), version, "kept")
    run.keep("records", stored(run, [group]))
    again = make_topic(run, "gone")
    run.send(summary(group, again), 1, "another topic of the name")
    run.send(read(group, again), 0, "another topic of the name")


@scenario_on("share state")
def share_state_topic(run: Run) -> None:
    warm_up(run, make_topic(run))
    keys = ["cleanup.policy", "compression.type", "min.insync.replicas", "retention.ms"]
    keys += ["segment.bytes", "retention.bytes", "unclean.leader.election.enable"]
    run.send(described((TOPIC, STATE_TOPIC), keys=keys), 4, "settings of the topic")
    named = MetadataRequest(topics=[MetadataRequestTopic(name=STATE_TOPIC)])
    run.send(named, 12, "metadata of the topic")


@scenario_on("share state on time")
def before_the_share_state_topic_is_there(run: Run) -> None:
    topic, group = make_topic(run), run.group()
    for name, ask, version in APIS:
        run.send(ask(group, topic), version, f"{name}, no topic")
        run.send(ask(group, topic, partition=-1), version, f"{name}, no topic, partition -1")
        run.send(ask(group, UNKNOWN_ID), version, f"{name}, no topic, an unknown topic")
        run.send(ask("", topic), version, f"{name}, no topic, no group")


@scenario_on("share features")
def share_version_changes(run: Run) -> None:
    for kind in (UPGRADE, SAFE, UNSAFE):
        for level in (-1, 0, 1, 2, 3):
            request = update(("share.version", level), kind=kind, validate_only=True)
            run.send(request, 2, f"only validated: {level}, type {kind}")
    topic, group = make_topic(run), run.group()
    warm_up(run, topic)
    run.setup(initialize(group, topic), 0)
    for level, kind in ((1, SAFE), (0, SAFE), (2, UPGRADE), (0, UNSAFE), (1, UPGRADE)):
        run.send(update(("share.version", level), kind=kind), 2, f"to level {level}")
        asked = ApiVersionsRequest(client_software_name="golden", client_software_version="1")
        found = {each.name: each for each in run.setup(asked, 4).finalized_features}
        now = found.get("share.version")
        run.keep(f"level {level}", None if now is None else now.max_version_level)
        run.send(look_up(key_of(group, topic)), 6, f"level {level}")
        for name, ask, version in APIS:
            run.send(ask(group, topic), version, f"level {level}, {name}")
    run.send(update(("share.version", 2)), 1, "as it was")


@scenario_on("share state on time")
def share_state_is_pruned(run: Run) -> None:
    topic, group = make_topic(run, partitions=3), run.group()
    warm_up(run, topic)
    run.setup(delete(run.group("warm"), topic), 0)
    for partition in range(3):
        run.setup(initialize(group, topic, partition=partition, start=partition), 0)
    for first in range(4):
        for partition in (0, 1):
            batch = (first, first, ACKNOWLEDGED, 1)
            run.setup(write(group, topic, batch, partition=partition, start=first), 1)
    run.keep("before", stored(run, [group]))
    for pause_ms in (9000, 4000):
        run.let_pass(pause_ms)
        found = sorted(stored(run, [group]), key=lambda row: int(row["partition"]))
        run.keep(f"only cold snapshots, {pause_ms} ms later", found)
    for partition in range(3):
        run.send(read(group, topic, partition=partition), 0, f"partition {partition}")
