"""Segments rewritten by a job, and swapped in by the owner of the directory."""

from __future__ import annotations

import pytest

from embedlog.errors import CorruptRecord, KafkaStorageError, UnknownTopicOrPartition
from embedlog.storage.log.log import Log
from embedlog.storage.staging.manifest import Replacement, ReplacingFile, decode
from embedlog.storage.staging.replacer import Replacer
from embedlog.storage.staging.rewriting import Rewriter, RewriteRules, SegmentWriter
from tests.storage.cleaner.compaction import (
    BACKOFF_MS,
    Compacted,
    batches_read,
    check_compacted,
    committed_rows,
    latest,
    rows,
)
from tests.storage.logs import DATA, PARTITION, append, append_marker, batch, uncleanable
from tests.storage.staging.replacement.replacement import ERASED, Owned, without
from wire.records.format import Codec


@pytest.fixture
def owned() -> Owned:
    one = Owned()
    one.fill()
    assert len(one.log.segments) > 4
    return one


def _producers(log: Log) -> list[tuple[int, ...]]:
    return [
        (
            one.base_offset,
            one.last_offset,
            one.producer_id,
            one.base_sequence,
            one.attributes & 0x30,
        )
        for one in batches_read(log)
        if one.producer_id >= 0
    ]


def _reopened(owned: Owned) -> Owned:
    owned.manager.close()
    return Owned(owned.disk.survivor())


def test_an_erased_key_is_gone_from_closed_segments_and_all_else_is_as_it_was(
    owned: Owned,
) -> None:
    log = owned.log
    active = log.segments[-1].base_offset
    before, producers = rows(log), _producers(log)
    committed = without(committed_rows(log), ERASED, below=active)
    aborted = log.transactions.aborted(0, log.log_end_offset)
    assert aborted
    assert len(owned.rewrite(RewriteRules(erased=[ERASED]))) == len(log.segments) - 1
    for each in (owned, _reopened(owned)):
        expected = without(before, ERASED, below=active)
        assert rows(each.log) == expected != before
        assert committed_rows(each.log) == committed
        assert _producers(each.log) == producers
        assert each.log.transactions.aborted(0, each.log.log_end_offset) == aborted
        check_compacted(each.log)
        assert each.findings() == []
    assert not any(b"k1" in each.file.view(0, each.size).tobytes() for each in log.segments[:-1])


def test_a_second_run_finds_nothing_to_do(owned: Owned) -> None:
    rules = RewriteRules(erased=[ERASED], codec=Codec.GZIP, batch_size=1 << 14)
    assert owned.rewrite(rules)
    assert owned.rewrite(rules, job="again") == []


def test_a_producer_goes_on_where_it_was(owned: Owned) -> None:
    owned.rewrite(RewriteRules(erased=[b"k0", b"k1", b"k2", b"k3"]))
    again = _reopened(owned)
    end = again.log.log_end_offset
    append(again.log, b"next", b"one", producer=(9, 0, 16), keys=[b"n", b"n"])
    assert again.log.log_end_offset == end + 2
    append_marker(again.log, 11, committed=False)
    again.commit()
    assert again.log.offsets.last_stable_offset == again.log.log_end_offset


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_compression_changes_no_record(owned: Owned, codec: int) -> None:
    before = rows(owned.log)
    gaps_below = owned.log.offsets.gaps_below
    owned.rewrite(RewriteRules(codec=codec))
    closed = owned.log.segments[-1].base_offset
    found = [one for one in batches_read(owned.log) if one.base_offset < closed]
    assert {one.codec for one in found if not one.is_control} == {codec}
    assert {one.codec for one in found if one.is_control} == {Codec.NONE}
    assert rows(_reopened(owned).log) == rows(owned.log) == before
    assert owned.log.offsets.gaps_below == gaps_below == 0
    assert owned.findings() == []


def test_small_batches_become_one_and_those_of_producers_stay(owned: Owned) -> None:
    before, producers = rows(owned.log), _producers(owned.log)
    count = len(batches_read(owned.log))
    owned.rewrite(RewriteRules(batch_size=1 << 14))
    assert len(batches_read(owned.log)) < count
    assert rows(owned.log) == before
    assert _producers(owned.log) == producers
    assert owned.findings() == []
    check_compacted(owned.log)


def test_of_each_key_the_last_record_below_the_active_segment_stays(owned: Owned) -> None:
    closed = owned.log.segments[-1].base_offset
    before = rows(owned.log)
    latest = {key: offset for offset, key, _ in before if key is not None and offset < closed}
    owned.rewrite(RewriteRules(), latest=latest)
    expected = [
        (offset, key, value)
        for offset, key, value in before
        if key is None or offset >= latest[key] or offset >= closed
    ]
    assert rows(owned.log) == expected
    assert len(expected) < len(before)
    assert owned.findings() == []


def test_a_segment_that_was_rewritten_meanwhile_refuses_all(owned: Owned) -> None:
    late = owned.stage(RewriteRules(codec=Codec.GZIP), job="late")
    owned.rewrite(RewriteRules(erased=[ERASED]))
    before = rows(owned.log)
    with pytest.raises(KafkaStorageError, match="run the job again"):
        owned.replace(late)
    assert rows(owned.log) == before
    assert not [each for each in owned.disk.list(owned.log.directory) if "cleaned" in each]


def test_a_segment_of_the_same_size_with_other_batches_is_refused(owned: Owned) -> None:
    files = owned.stage(RewriteRules(codec=Codec.GZIP))
    files[0] = files[0].replace(fingerprint="0" * 64)
    with pytest.raises(KafkaStorageError, match="other batches"):
        owned.replace(files)


def test_a_segment_that_retention_removed_refuses_all(owned: Owned) -> None:
    files = owned.stage(RewriteRules(erased=[ERASED]))
    owned.log.offsets.increment_log_start_offset(owned.log.segments[1].base_offset)
    owned.log.replace_segments(owned.log.segments[1:])
    before = rows(owned.log)
    with pytest.raises(KafkaStorageError, match="no closed segment"):
        owned.replace(files)
    assert rows(owned.log) == before


def test_the_active_segment_is_refused_until_it_is_rolled(owned: Owned) -> None:
    base = owned.log.segments[-1].base_offset
    file = ReplacingFile("job/x", size=1, base_offset=base, former_size=1, fingerprint="")
    with pytest.raises(KafkaStorageError, match="no closed segment"):
        owned.replace([file])
    owned.replacer.replace(owned.log, Replacement("2", PARTITION, is_roll=True))
    assert owned.log.segments[-1].base_offset == owned.log.log_end_offset
    owned.rewrite(RewriteRules(erased=[ERASED]))
    assert [row for row in rows(owned.log) if row[1] == ERASED] == []


def test_a_topic_that_was_made_anew_is_refused(owned: Owned) -> None:
    owned.log.topic_id = bytes(16)
    replacement = Replacement(
        "1", PARTITION, owned.stage(RewriteRules(codec=1)), topic_id="ab" * 16
    )
    with pytest.raises(UnknownTopicOrPartition, match="made anew"):
        owned.replacer.replace(owned.log, replacement)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (batch(b"x", base_offset=0)[:-1] + b"?", "crc|checksum"),
        (batch(b"x", base_offset=900), "offsets 900"),
        (batch(b"x", base_offset=0, leader_epoch=7), "leader epoch 7"),
        (batch(b"x", base_offset=0, leader_epoch=0), "batches of producers"),
        (b"nothing", "bytes"),
    ],
)
def test_a_file_that_does_not_agree_with_its_segment_is_refused(
    owned: Owned, made: bytes, reason: str
) -> None:
    file = owned.stage(RewriteRules(codec=Codec.GZIP))[0]
    before = rows(owned.log)
    opened = owned.disk.open(f"{DATA}/.exchange/staged/{file.path}")
    opened.truncate(0)
    opened.write((made,), 0)
    opened.close()
    file = file.replace(size=len(made))
    with pytest.raises(CorruptRecord, match=reason):
        owned.replace([file])
    assert rows(owned.log) == before


def test_the_staged_files_are_gone_afterwards(owned: Owned) -> None:
    owned.rewrite(RewriteRules(erased=[ERASED]))
    assert owned.disk.list(f"{DATA}/.exchange/staged") == []


def test_a_reader_keeps_what_it_was_given(owned: Owned) -> None:
    read = owned.log.reader.read(0, max_bytes=200, end_offset=owned.log.log_end_offset)
    before = read.records.tobytes()
    owned.rewrite(RewriteRules(erased=[ERASED], codec=Codec.GZIP))
    assert read.records.tobytes() == before


def test_manifests_of_both_kinds_are_told_apart() -> None:
    file = ReplacingFile("job/a", size=2, base_offset=5, former_size=3, fingerprint="f")
    found = decode(Replacement("1", PARTITION, [file], topic_id="aa").encode(), "m")
    assert isinstance(found, Replacement)
    assert found.files[0] == file
    with pytest.raises(CorruptRecord, match="leaves the staging area"):
        bad = ReplacingFile("../a", size=2, base_offset=5, former_size=3, fingerprint="f")
        decode(Replacement("1", PARTITION, [bad]).encode(), "m")
    with pytest.raises(CorruptRecord, match="no manifest"):
        decode(b"[]", "m")
    for files in ([], [file, file]):
        with pytest.raises(CorruptRecord, match="files for the segments"):
            decode(Replacement("1", PARTITION, files).encode(), "m")
    assert decode(Replacement("1", PARTITION, is_roll=True).encode(), "m").id == "1"


def test_nothing_is_swapped_in_while_compaction_is_at_its_files(owned: Owned) -> None:
    files, before = owned.stage(RewriteRules(erased=[ERASED])), rows(owned.log)
    owned.log.chain.is_swapping = True
    with pytest.raises(KafkaStorageError, match="compaction is at its files"):
        owned.replace(files)
    owned.log.chain.is_swapping = False
    assert rows(owned.log) == before
    assert not [each for each in owned.disk.list(owned.log.directory) if "cleaned" in each]
    owned.replace(files)
    assert rows(owned.log) != before


def test_a_round_of_compaction_that_was_overtaken_begins_again() -> None:
    """The cleaner has read the same segment, and has its own output for it open."""
    topic = Compacted(None, segment_bytes=300_000)
    for number in range(40):
        topic.put((f"k{number % 25}", f"v{number}" * 9_000))
    topic.log.roll()
    replacer = Replacer(topic.runtime, DATA, topic.manager.leftovers.remove_files)
    disk = topic.runtime.files
    latest_before = latest(rows(topic.log))
    slices = 0

    def overtake() -> None:
        nonlocal slices
        slices += 1
        names = disk.list(topic.log.directory)
        if slices > 50 or not [name for name in names if name.endswith(".log.cleaned")]:
            return
        slices = 100
        writer = SegmentWriter(disk, DATA, PARTITION, job="job", writer="task")
        rewriter = Rewriter(RewriteRules(codec=Codec.GZIP))
        made = [writer.write(each.base_offset, rewriter) for each in topic.log.segments[:-1]]
        files = [each.file for each in made if each.file is not None]
        replacer.replace(topic.log, Replacement("1", PARTITION, files))

    topic.wait(4 * BACKOFF_MS, overtake)
    assert slices >= 100
    assert uncleanable(topic.manager) == {}
    assert latest(rows(topic.log)) == latest_before
    assert topic.log.offsets.cleaned_offset == topic.log.segments[-1].base_offset
    check_compacted(topic.log)
