"""Share groups when something is in the way: lost state, changed settings, dead letter topics, the
feature's levels.
"""

from __future__ import annotations

from tests.golden.batches import gzipped
from tests.golden.requests import Topic, creation, make_topic, produce
from tests.golden.requests import fetch as plain_fetch
from tests.golden.run import Run, scenario_on
from tests.golden.sharing_requests import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Sharer,
    acknowledge_request,
    begin_state,
    configure,
    delete_state,
    fetch_request,
    fill,
    read_state,
    read_summary,
)
from wire.schemas.update_features import FeatureUpdateKey, UpdateFeaturesRequest

STRICT = 1
PAUSE_MS = 2500
ENABLED: dict[str, str | None] = {"errors.deadletterqueue.group.enable": "true"}


def _prepared(run: Run, *sizes: int, suffix: str = "g", **settings: str) -> tuple[Sharer, Topic]:
    topic = make_topic(run, f"t-{suffix}")
    group = run.group(suffix)
    if settings:
        configure(run, group, **settings)
    begin_state(run, group, topic)
    fill(run, topic, *sizes)
    return Sharer(run, group), topic


@scenario_on("sharing")
def share_state_is_deleted(run: Run) -> None:
    one, topic = _prepared(run, 4)
    place = (topic, 0)
    one.fetch("lock", place)
    run.setup(delete_state(one.group, topic), 0)
    one.acknowledge("the state has gone", {place: [(0, 1, [ACCEPT])]})
    one.fetch("by a fetch", acknowledged={place: [(0, 1, [ACCEPT])]}, max_wait_ms=0)
    one.acknowledge("the locks are still held", {place: [(0, 3, [RENEW])]}, is_renew_ack=True)
    begin_state(run, one.group, topic)
    one.acknowledge("a new state of the same epoch", {place: [(0, 1, [ACCEPT])]})
    one.acknowledge("close", {}, epoch=-1)
    run.send(read_state(one.group, topic), 0, "the end")


@scenario_on("sharing")
def share_limit_is_lowered(run: Run) -> None:
    one, topic = _prepared(run, 6)
    place = (topic, 0)
    for number in range(3):
        one.fetch(f"round {number}", place, max_wait_ms=300)
        if number < 2:
            one.acknowledge("release", {place: [(0, 5, [RELEASE])]}, keep=False)
    configure(run, one.group, share_delivery_count_limit="2")
    one.acknowledge("release two", {place: [(0, 1, [RELEASE])]})
    run.send(read_state(one.group, topic), 0, "two are archived")
    one.acknowledge("renew and accept", {place: [(2, 3, [RENEW, ACCEPT])]}, is_renew_ack=True)
    configure(run, one.group, share_delivery_count_limit="10")
    one.acknowledge("release the rest", {place: [(2, 2, [RELEASE]), (4, 5, [RELEASE])]})
    one.fetch("they come again", max_wait_ms=300)
    run.send(read_state(one.group, topic), 0, "the end")
    run.send(read_summary(one.group, topic), 1, "the end")


@scenario_on("sharing")
def share_lock_limit_is_lowered(run: Run) -> None:
    one, topic = _prepared(run, 60, 60, 60, 60)
    place = (topic, 0)
    one.fetch("two batches", place, max_records=61)
    configure(run, one.group, share_partition_max_record_locks="100")
    one.fetch("the limit is exceeded", max_wait_ms=100)
    one.acknowledge("accept ten", {place: [(0, 9, [ACCEPT])]})
    one.fetch("still exceeded", max_wait_ms=100)
    one.acknowledge("accept twenty more", {place: [(10, 29, [ACCEPT])]})
    one.fetch("there is room for ten, in whole batches", max_wait_ms=300)
    one.acknowledge("release the last of the window", {place: [(170, 179, [RELEASE])]})
    one.fetch("only they", max_wait_ms=300)


@scenario_on("sharing")
def share_compressed_batches(run: Run) -> None:
    one, topic = _prepared(run)
    run.setup(produce(topic, 9, gzipped(*[b"value"] * 20)), 9)
    run.setup(produce(topic, 9, gzipped(*[b"value"] * 20)), 9)
    place = (topic, 0)
    one.fetch("five of a compressed batch", place, max_records=5, share_acquire_mode=STRICT)
    one.fetch("thirty", max_records=30, share_acquire_mode=STRICT)
    one.fetch("in the other mode", max_records=1)
    one.acknowledge("parts", {place: [(3, 24, [RELEASE])]})
    one.fetch("the parts", max_wait_ms=300)


@scenario_on("sharing")
def share_gaps_and_mixtures(run: Run) -> None:
    one, topic = _prepared(run, 8, 4)
    place = (topic, 0)
    one.fetch("all", place)
    types = [ACCEPT, GAP, ACCEPT, GAP, RELEASE, RELEASE, REJECT, REJECT]
    one.acknowledge("mixed", {place: [(0, 7, types)]})
    run.send(read_state(one.group, topic), 0, "mixed")
    run.send(read_summary(one.group, topic), 1, "mixed")
    one.acknowledge("three batches", {place: [(8, 8, [ACCEPT]), (9, 9, [GAP]), (11, 11, [ACCEPT])]})
    one.fetch("the released ones", max_wait_ms=300)
    one.acknowledge("with a hole", {place: [(4, 5, [ACCEPT]), (9, 10, [ACCEPT])]})
    one.acknowledge("each alone", {place: [(4, 4, [ACCEPT]), (5, 5, [ACCEPT]), (10, 10, [ACCEPT])]})
    run.send(read_summary(one.group, topic), 1, "the end")
    one.fetch("nothing is left", max_wait_ms=100)


@scenario_on("sharing")
def share_acknowledge_of_released(run: Run) -> None:
    one, topic = _prepared(run, 4, 4)
    place = (topic, 0)
    one.fetch("the first", place, max_records=4)
    one.fetch("the second", max_records=4)
    one.acknowledge("release the first", {place: [(0, 3, [RELEASE])]})
    for kind in (ACCEPT, RELEASE, REJECT, GAP):
        one.acknowledge(f"whole batch, type {kind}", {place: [(0, 3, [kind])]})
        one.acknowledge(f"part, type {kind}", {place: [(1, 2, [kind])]})
    one.acknowledge("renew", {place: [(0, 3, [RENEW])]}, is_renew_ack=True)
    one.acknowledge("over both", {place: [(0, 7, [ACCEPT])]})
    one.acknowledge("the second still", {place: [(4, 7, [ACCEPT])]})
    run.send(read_state(one.group, topic), 0, "the end")


@scenario_on("sharing")
def share_first_fetch_by_another_version(run: Run) -> None:
    one, topic = _prepared(run, 5, 5)
    place = (topic, 0)
    one.fetch("v1, MaxRecords 1", place, version=1, max_records=1)
    one.fetch("v2 in the same session", version=2, max_records=1, share_acquire_mode=STRICT)
    one.acknowledge("v1", {place: [(0, 1, [ACCEPT])]}, version=1)
    one.acknowledge("v2", {place: [(2, 3, [ACCEPT])]}, version=2, is_renew_ack=True)
    one.fetch("v1 with acknowledgements", version=1, acknowledged={place: [(4, 5, [ACCEPT])]},
              max_records=0)  # fmt: skip
    one.acknowledge("close by v1", {}, version=1, epoch=-1)


@scenario_on("sharing")
def share_dead_letter_topics(run: Run) -> None:
    plain, foreign = "dlq." + run.topic("plain"), run.topic("foreign")
    run.setup(creation(plain), 7)
    run.setup(creation(foreign, configs=ENABLED), 7)
    for suffix, name in (("plain", plain), ("foreign", foreign), ("illegal", "dlq.a b")):
        one, topic = _prepared(run, 2, suffix=suffix, errors_deadletterqueue_topic_name=name)
        place = (topic, 0)
        one.fetch(f"lock for {suffix}", place)
        one.acknowledge(f"reject for {suffix}", {place: [(0, 1, [REJECT])]})
        run.let_pass(PAUSE_MS)
        run.send(read_state(one.group, topic), 0, f"no letter in {suffix}")
    run.send(plain_fetch((plain, b""), 12), 12, "the plain topic is empty")
    run.send(plain_fetch((foreign, b""), 12), 12, "the foreign topic is empty")


@scenario_on("sharing")
def share_dead_letter_topic_is_created(run: Run) -> None:
    name = "dlq." + run.topic("made")
    one, topic = _prepared(
        run, 3, errors_deadletterqueue_topic_name=name,
        errors_deadletterqueue_copy_record_enable="true",
    )  # fmt: skip
    place = (topic, 0)
    one.fetch("lock", place)
    one.acknowledge("reject", {place: [(0, 0, [REJECT])]})
    one.acknowledge("while the letter is written", {place: [(0, 0, [ACCEPT])]})
    run.let_pass(2 * PAUSE_MS)
    run.send(read_state(one.group, topic), 0, "archived")
    run.send(plain_fetch((name, b""), 12), 12, "the letters")
    one.acknowledge("the others", {place: [(1, 2, [ACCEPT])]})
    run.send(read_summary(one.group, topic), 1, "the end")


@scenario_on("sharing")
def share_dead_letters_of_expired_locks(run: Run) -> None:
    name = "dlq." + run.topic("dead")
    run.setup(creation(name, configs=ENABLED), 7)
    one, topic = _prepared(
        run, 2, errors_deadletterqueue_topic_name=name, share_delivery_count_limit="2",
        share_record_lock_duration_ms="1000",
    )  # fmt: skip
    place = (topic, 0)
    one.fetch("lock", place)
    run.let_pass(1300)
    one.fetch("lock again", max_wait_ms=300)
    run.let_pass(1300 + PAUSE_MS)
    run.send(read_state(one.group, topic), 0, "archived")
    run.send(plain_fetch((name, b""), 12), 12, "the letters")
    one.fetch("nothing is left", max_wait_ms=100)


def _set_level(run: Run, level: int, note: str) -> None:
    update = FeatureUpdateKey(
        feature="share.version", max_version_level=level, upgrade_type=1 if level else 2
    )
    run.send(UpdateFeaturesRequest(feature_updates=[update], timeout_ms=5000), 2, note)
    run.let_pass(1000)


@scenario_on("few share sessions")
def share_feature_levels(run: Run) -> None:
    one, topic = _prepared(run, 3)
    place = (topic, 0)
    one.fetch("lock", place)
    _set_level(run, 0, "off")
    for version in (1, 2):
        run.send(fetch_request(one.group, "one", 1), version, "off")
        run.send(acknowledge_request(one.group, "one", 1, {}), version, "off")
        run.send(fetch_request(None, None, 0), version, "off, and wrong")
        run.send(acknowledge_request(None, None, 0, {}), version, "off, and wrong")
    _set_level(run, 1, "on")
    one.fetch("the session is forgotten", max_wait_ms=0)
    one.acknowledge("also for acknowledgements", {place: [(0, 2, [ACCEPT])]})
    one.epoch = 0
    one.fetch("a delivery that was never stored", place)
    one.acknowledge("close", {place: [(0, 2, [ACCEPT])]}, epoch=-1)
    _set_level(run, 2, "with dead letters")
