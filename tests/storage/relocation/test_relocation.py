"""A log moves to another directory, and none of its users notices."""

from __future__ import annotations

import pytest

from embedlog.common import TopicPartition
from embedlog.errors import KafkaStorageError
from embedlog.storage import paths
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.retention import delete_old_segments
from embedlog.storage.relocation.relocations import WAIT_MS
from embedlog.storage.replica.truncation import truncate_fully_and_start_at, truncate_to
from embedlog.testing import sim_runtime
from tests.storage.logs import NOW, PARTITION, append, append_marker, batch, values
from tests.storage.relocation.relocation import HERE, THERE, Moving

levels = pytest.mark.parametrize("durability", ["memory", "os", "fsync"])


@levels
def test_a_log_moves_with_everything_it_has(durability: str) -> None:
    moving = Moving(durability=durability)
    before, log = moving.told(), moving.log
    files = {
        segment.base_offset: bytes(segment.file.view(0, segment.size)) for segment in log.segments
    }
    moving.move()
    assert (moving.place, moving.told()) == (THERE, before)
    moving.check()
    for base_offset, content in files.items():
        path = paths.segment_file(f"{THERE}/events-0", base_offset)
        assert moving.disk.read(path)[: len(content)] == content
    # The last batch of the idempotent producer, sent once more.
    again = batch(b"v22", b"w22", keys=[b"k2", b"k1"], producer=(9, 0, 14))
    assert log.append_as_leader(again, leader_epoch=1, now_ms=NOW).duplicate
    append_marker(log, 11, committed=True)
    append(log, b"next", epoch=2)
    moving.commit()
    moving.check()
    if durability == "memory":
        return
    after = moving.told()
    moving.close()
    opened = Moving(moving.disk.survivor(), durability=durability)
    assert (opened.place, opened.told()) == (THERE, after)
    opened.check()


@levels
def test_a_log_moves_there_and_back(durability: str) -> None:
    moving = Moving(durability=durability)
    before = moving.told()
    for target, place in ((moving.there, THERE), (moving.here, HERE), (moving.there, THERE)):
        moving.move(target)
        assert (moving.place, moving.told()) == (place, before)
        append(moving.log, b"more", epoch=1)
        moving.commit()
        moving.check()
        before = moving.told()


def test_who_reads_a_former_segment_reads_on() -> None:
    moving = Moving()
    former = moving.log.segments
    views = [segment.file.view(0, segment.size) for segment in former]
    contents = [bytes(view) for view in views]
    for segment in former[::2]:
        segment.file.release()
    moving.move()
    moving.here.leftovers.remove()
    assert [bytes(segment.file.view(0, segment.size)) for segment in former] == contents
    assert [bytes(view) for view in views] == contents
    # Even if the log has moved again, or the records there are cut.
    moving.move(moving.here)
    for segment in former:
        segment.file.release()
    truncate_to(moving.log, 20)
    kept = [(segment, content) for segment, content in zip(former, contents, strict=True)
            if segment.next_offset <= 20]  # fmt: skip
    assert kept
    for segment, content in kept:
        assert bytes(segment.file.view(0, segment.size)) == content
    assert former[-1].file.successor.successor.is_gone is False


def test_a_former_segment_is_not_taken_for_a_log_made_anew() -> None:
    moving = Moving()
    former = moving.log.segments
    for segment in former:
        segment.file.release()
    moving.move()
    moving.there.delete(PARTITION)
    again = moving.here.get_or_create(PARTITION)
    append(again, b"another")
    with pytest.raises(KafkaStorageError):
        former[0].file.view(0, former[0].size)


def test_the_log_goes_on_while_it_is_copied() -> None:
    moving = Moving(slice_size=150, last_size=100, segment_bytes=2000)
    appended = []

    def go_on() -> None:
        if len(appended) < 40:
            append(moving.log, b"meanwhile %d" % len(appended), epoch=1)
            appended.append(b"meanwhile %d" % len(appended))
            moving.commit()

    moving.ask()
    assert moving.go_on(go_on) > 20
    assert values(moving.log)[-len(appended) :] == appended
    assert moving.place == THERE
    moving.check()


@pytest.mark.parametrize("after", range(0, 15, 3))
@pytest.mark.parametrize(
    "change", ["truncate", "start over", "retain", "delete records", "roll", "append"]
)
def test_what_happens_meanwhile_has_happened_there(change: str, after: int) -> None:
    moving = Moving(slice_size=120)
    log, slice_count = moving.log, 0

    def happen() -> None:
        nonlocal slice_count
        slice_count += 1
        if slice_count != after + 1:
            return
        with log.lock:
            if change == "truncate":
                truncate_to(log, 30)
                append(log, b"other", epoch=2)
                append(log, b"records " * 40, epoch=2)
            elif change == "start over":
                truncate_fully_and_start_at(log, 100)
                append(log, b"anew", epoch=2)
            elif change == "retain":
                log.offsets.increment_log_start_offset(25)
                assert delete_old_segments(log, NOW)
            elif change == "delete records":
                log.offsets.increment_log_start_offset(17)
            elif change == "roll":
                log.roll()
            else:
                append(log, bytes(400), epoch=1)
        moving.commit()

    moving.ask()
    assert moving.go_on(happen) > after
    told = moving.told()
    assert moving.place == THERE
    moving.check()
    moving.close()
    opened = Moving(moving.disk.survivor())
    assert (opened.place, opened.told()) == (THERE, told)
    opened.check()


@pytest.mark.parametrize("after", range(0, 15, 3))
def test_compaction_meanwhile_is_copied_anew(after: int) -> None:
    moving = Moving(slice_size=120)
    moving.compact()
    size, slice_count = moving.log.size, 0

    def clean() -> None:
        nonlocal slice_count
        slice_count += 1
        if slice_count == after + 1:
            for _ in moving.here.tasks.finish_now():
                pass

    moving.ask()
    moving.go_on(clean)
    assert moving.log.size < size
    told = moving.told()
    moving.close()
    opened = Moving(moving.disk.survivor(), cleanup_policy="compact")
    assert (opened.place, opened.told()) == (THERE, told)
    assert opened.log.failure is None


@pytest.mark.parametrize("after", range(0, 30, 3))
def test_a_compaction_that_was_begun_here_changes_nothing_there(after: int) -> None:
    moving = Moving()
    moving.compact()
    cleaning = moving.here.tasks.finish_now()
    for _ in range(after):
        next(cleaning, None)
    moving.move()
    told = moving.told()
    for _ in cleaning:
        pass
    assert moving.told() == told
    for _ in moving.there.tasks.finish_now():
        pass
    moving.close()
    opened = Moving(moving.disk.survivor(), cleanup_policy="compact")
    assert opened.told() == moving.told()
    assert opened.log.failure is None


def test_a_move_that_waits_for_compaction_lets_others_go_first() -> None:
    moving = Moving()
    other = TopicPartition("other", 0)
    log = moving.here.get_or_create(other)
    append(log, b"x")
    moving.log.chain.is_swapping = True
    moving.ask()
    moving.relocations.start(other, THERE)
    waits = [moving.relocations.run_once(0) for _ in range(6)]
    assert (moving.place, log.directory) == (HERE, f"{THERE}/other-0")
    assert waits[-1] == WAIT_MS
    moving.log.chain.is_swapping = False
    moving.go_on()
    assert moving.place == THERE


def test_a_process_without_descriptors_tries_again() -> None:
    moving = Moving(slice_size=120)
    moving.ask()
    moving.relocations.run_once(0)
    moving.disk.fail(moving.disk.calls + 1, 24)
    assert moving.relocations.run_once(0) == WAIT_MS
    before = moving.told()
    moving.go_on()
    assert (moving.place, moving.told()) == (THERE, before)
    moving.check()


def test_a_move_to_where_it_is_ends_the_one_under_way() -> None:
    moving = Moving()
    moving.ask()
    assert moving.relocations.futures()[PARTITION].directory == THERE
    moving.ask(moving.here)
    assert moving.relocations.futures() == {}
    moving.go_on()
    assert moving.place == HERE
    moving.check()


def test_a_move_that_was_begun_is_given_up_with_its_log() -> None:
    moving = Moving(slice_size=120)
    moving.ask()
    moving.relocations.run_once(0)
    assert moving.names(THERE)
    moving.here.delete(PARTITION)
    again = moving.here.get_or_create(PARTITION)
    append(again, b"another")
    moving.go_on()
    assert moving.both.holder(PARTITION) is moving.here
    assert moving.names(THERE) == []
    assert moving.relocations.health() == []


def test_the_end_of_a_process_lets_the_next_one_begin_anew() -> None:
    moving = Moving(slice_size=120)
    moving.ask()
    moving.relocations.run_once(0)
    before = moving.told()
    moving.close()
    opened = Moving(moving.disk.survivor())
    assert (opened.place, opened.told()) == (HERE, before)
    opened.resume()
    opened.go_on()
    assert (opened.place, opened.told()) == (THERE, before)
    opened.check()


def test_a_log_of_another_topic_of_that_name_is_no_older_one() -> None:
    moving = Moving()
    moving.close()
    moving.disk.open(f"{HERE}/events-0/{paths.COPIED_HERE}", create=True)
    disk = moving.disk.survivor()
    other = LogManager(sim_runtime(files=disk), THERE)
    log = other.get_or_create(PARTITION, topic_id=bytes(15) + b"o")
    append(log, b"of another")
    other.close()
    opened = Moving(disk)
    assert (opened.names(HERE), opened.names(THERE)) == (["events-0"], ["events-0"])


def test_a_copy_tells_how_far_it_is() -> None:
    moving = Moving(slice_size=120)
    moving.ask()
    seen = []

    def look() -> None:
        for future in moving.relocations.futures().values():
            seen.append((future.size, future.end_offset))

    moving.go_on(look)
    assert seen == sorted(seen)
    assert len(set(seen)) > 4
    assert seen[-1][0] <= moving.log.size
    assert seen[-1][1] <= moving.log.log_end_offset


def test_the_rate_is_obeyed() -> None:
    moving = Moving(rate=1000)
    size = moving.log.size
    moving.ask()
    start_ms = moving.runtime.clock.monotonic_ms()
    while moving.relocations.futures():
        moving.runtime.clock.advance(10)
        moving.runtime.scheduler.run_due(moving.runtime.clock.monotonic_ms())
    took_ms = moving.runtime.clock.monotonic_ms() - start_ms
    assert size - 1100 <= took_ms <= size + 1000
    moving.check()


@pytest.mark.slow
@pytest.mark.parametrize("errno", [5, 28])
def test_a_target_that_refuses_leaves_the_log_where_it_is(errno: int) -> None:
    calls = Moving()
    start = calls.disk.calls
    calls.move()
    ended = poisoned = 0
    for call in range(start, calls.disk.calls):
        moving = Moving()
        before = moving.told()
        moving.ask()
        moving.disk.fail(call, errno)
        moving.go_on()
        moving.disk.heal()
        assert moving.told()[0] == before[0]
        if moving.log.failure is not None:
            poisoned += 1
        elif moving.place == HERE:
            ended += 1
            [degradation] = moving.relocations.health()
            assert str(degradation).startswith("move ended: events-0: from here/events-0 to there")
            assert append(moving.log, b"next", epoch=1)
            before = moving.told()
            moving.move()
            assert (moving.place, moving.told()) == (THERE, before)
            assert moving.relocations.health() == []
            moving.check()
            continue
        survivor = Moving(moving.disk.survivor())
        assert survivor.told()[0] == before[0]
        survivor.check()
    assert ended > 20
    assert 0 < poisoned < 4
