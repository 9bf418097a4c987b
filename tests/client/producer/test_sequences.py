"""Sequences and the effect of each answer on them: Kafka's rules, and our stricter ones."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.client.parse_settings import parse
from embedlog.client.producer.batch import ProducerBatch
from embedlog.client.producer.columns import Columns
from embedlog.client.producer.settings import complete
from embedlog.client.producer.transactions.idempotence import IdempotentSequences
from embedlog.client.settings import PRODUCER
from embedlog.errors import KafkaError
from embedlog.runtime.pending import Pending, completed
from embedlog.testing import SimRuntime, sim_runtime
from wire.schemas.init_producer_id import InitProducerIdResponse


class Ids:
    """A transport that gives producer ids, or the answers of `script`."""

    in_process = True

    def __init__(self) -> None:
        self.runtime: SimRuntime = sim_runtime(seed=1)
        self.script: list[Any] = []
        self.given = 0

    def send(self, node_id: int, request: Any) -> Pending[Any]:
        if self.script:
            answer = self.script.pop(0)
            if isinstance(answer, Pending):
                return answer
            if isinstance(answer, KafkaError):
                failed: Pending[Any] = Pending()
                failed.fail(answer)
                return failed
            return completed(InitProducerIdResponse(error_code=answer))
        self.given += 1
        return completed(InitProducerIdResponse(producer_id=self.given, producer_epoch=0))


class Bench:
    def __init__(self) -> None:
        self.ids = Ids()
        settings = complete(parse(PRODUCER), in_process=False)
        self.manager = IdempotentSequences(self.ids, settings)
        self.advance()

    def advance(self) -> int | None:
        return self.manager.advance(self.ids.runtime.clock.monotonic_ms())

    def batch(self, count: int = 1, partition: int = 0) -> ProducerBatch:
        records = Columns([b""], [0])
        made = ProducerBatch("t", partition, None, records, created_ms=0, size=0, size_limit=0)
        made.close()
        made.record_count = count
        return made

    def send(self, count: int = 1, partition: int = 0) -> ProducerBatch:
        """A new batch, numbered and on the wire."""
        batch = self.batch(count, partition)
        assert self.manager.may_drain(batch)
        self.manager.number(batch)
        return batch

    def start(self) -> None:
        """Send and acknowledge the first batch of the partition."""
        self.ack(self.send())

    def ack(self, batch: ProducerBatch) -> None:
        batch.is_on_wire = False
        self.manager.acknowledged(batch)

    def refuse(self, batch: ProducerBatch, code: int, log_start_offset: int = -1) -> bool:
        """Answer with an error; return whether another try is worth it."""
        batch.is_on_wire = False
        error = errors.error_for(code)
        error.log_start_offset = log_start_offset
        return self.manager.may_retry(batch, error)

    def give_up(self, batch: ProducerBatch, *, on_wire: bool = False) -> None:
        batch.is_on_wire = on_wire
        self.manager.gave_up(batch, errors.Network("gone"))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def number(batch: ProducerBatch) -> tuple[int, int, int]:
    return batch.numbers


OUT_OF_ORDER = 45
UNKNOWN_PRODUCER_ID = 59


def test_numbers_follow_each_other_for_each_partition(bench: Bench) -> None:
    bench.start()
    assert [number(bench.send(count)) for count in (3, 2, 1)] == [(1, 0, 1), (1, 0, 4), (1, 0, 6)]
    assert number(bench.send(5, partition=1)) == (1, 0, 0)


def test_numbers_begin_again_after_2_to_the_31(bench: Bench) -> None:
    bench.start()
    bench.ack(bench.send(2**31 - 3))
    first, second = bench.send(3), bench.send(1)
    assert (first.base_sequence, second.base_sequence) == (2**31 - 2, 1)
    bench.ack(first)
    bench.ack(second)
    third = bench.send()
    assert third.base_sequence == 2
    assert bench.refuse(third, OUT_OF_ORDER)
    bench.advance()
    assert bench.manager.producer_epoch == 1, "all before it was acknowledged: it is a gap"


def test_a_retry_keeps_its_numbers_and_only_the_oldest_goes(bench: Bench) -> None:
    bench.start()
    first, second = bench.send(), bench.send()
    assert bench.refuse(first, 7) is False, "the error itself says whether to try again"
    assert bench.manager.may_drain(first)
    assert not bench.manager.may_drain(second)
    bench.manager.number(first)
    assert number(first) == (1, 0, 1)


def test_out_of_order_behind_one_that_is_to_come_is_only_tried_again(bench: Bench) -> None:
    bench.start()
    first, second = bench.send(), bench.send()
    bench.refuse(first, 7)
    assert bench.refuse(second, OUT_OF_ORDER)
    bench.advance()
    assert bench.manager.producer_epoch == 0


def test_out_of_order_of_the_next_in_line_takes_a_new_epoch(bench: Bench) -> None:
    bench.start()
    first, second = bench.send(2), bench.send(3)
    assert bench.refuse(first, OUT_OF_ORDER)
    assert bench.refuse(second, OUT_OF_ORDER)
    bench.advance()
    assert [number(first), number(second)] == [(1, 1, 0), (1, 1, 2)]
    assert bench.manager.producer_epoch == 1


def test_a_new_epoch_waits_until_nothing_of_the_partition_is_on_the_wire(bench: Bench) -> None:
    bench.start()
    first, second = bench.send(2), bench.send(3)
    assert bench.refuse(first, OUT_OF_ORDER)
    bench.advance()
    assert number(first) == (1, 0, 1)
    assert not bench.manager.may_drain(first)
    bench.ack(second)
    bench.advance()
    assert number(first) == (1, 1, 0)
    assert number(second) == (1, 0, 3), "it was written under its old number"


def unanswered(*batches: ProducerBatch) -> None:
    """Let the connection break: these batches may be in the log."""
    for batch in batches:
        batch.is_on_wire, batch.may_be_written = False, True


def test_a_batch_that_may_be_in_the_log_is_not_numbered_anew(bench: Bench) -> None:
    """A broker that was started again knows only the last of the four batches that it wrote."""
    bench.start()
    *earlier, last = [bench.send() for _ in range(4)]
    unanswered(*earlier, last)
    for batch in earlier:
        assert bench.manager.may_drain(batch)
        assert not bench.refuse(batch, OUT_OF_ORDER)
        bench.give_up(batch)
        bench.advance()
    bench.ack(last)
    bench.advance()
    assert number(bench.send()) == (1, 0, 5), "the numbers go on after the last batch"


def test_the_refusal_of_the_last_batch_sent_proves_that_it_is_not_in_the_log(bench: Bench) -> None:
    """A broker always recognizes the last batch. It has lost it, and the batches before."""
    bench.start()
    last = bench.send()
    unanswered(last)
    assert bench.refuse(last, OUT_OF_ORDER)
    bench.advance()
    assert number(last) == (1, 1, 0)


def test_the_refusal_of_a_part_proves_nothing(bench: Bench) -> None:
    """The broker may have the whole batch, of whose parts it knows nothing."""
    bench.start()
    whole = bench.send(2)
    unanswered(whole)
    parts = [bench.batch(), bench.batch()]
    for part in parts:
        part.is_split_product = part.may_be_written = True
    bench.manager.split(whole, parts)
    for part in parts:
        assert not bench.refuse(part, OUT_OF_ORDER)
        bench.give_up(part)


def test_a_batch_before_the_refused_one_keeps_its_numbers_until_its_outcome(bench: Bench) -> None:
    """It may be in the log already; the batches after the refused one cannot be."""
    bench.start()
    first, refused, later = bench.send(), bench.send(), bench.send()
    unanswered(first)
    bench.give_up(refused)
    assert bench.refuse(later, OUT_OF_ORDER)
    bench.advance()
    assert [number(first), number(later)] == [(1, 0, 1), (1, 0, 3)]
    assert bench.manager.may_drain(first)
    assert not bench.manager.may_drain(later)
    assert not bench.manager.may_drain(bench.batch())
    bench.ack(first)
    bench.advance()
    assert [number(first), number(later)] == [(1, 0, 1), (1, 1, 0)]


def test_a_batch_before_the_refused_one_is_numbered_anew_once_it_is_missing(bench: Bench) -> None:
    bench.start()
    first, refused = bench.send(), bench.send()
    unanswered(first)
    bench.give_up(refused)
    bench.advance()
    assert bench.refuse(first, OUT_OF_ORDER)
    bench.advance()
    assert number(first) == (1, 1, 0)


def test_before_an_unresolved_batch_numbers_stay_until_the_outcome(bench: Bench) -> None:
    bench.start()
    first, lost, later = bench.send(), bench.send(), bench.send()
    unanswered(first)
    bench.give_up(lost, on_wire=True)
    assert bench.refuse(later, OUT_OF_ORDER)
    bench.advance()
    assert [number(first), number(later)] == [(1, 0, 1), (1, 0, 3)]
    bench.ack(first)
    bench.advance()
    assert number(later) == (1, 1, 0)


def test_a_partition_gets_its_new_epoch_while_another_waits_for_an_answer(bench: Bench) -> None:
    bench.start()
    bench.ack(bench.send(partition=1))
    waiting, other = bench.send(), bench.send()
    bench.refuse(waiting, OUT_OF_ORDER)
    refused = bench.send(partition=1)
    bench.refuse(refused, OUT_OF_ORDER)
    bench.advance()
    assert number(refused) == (1, 1, 0)
    assert number(waiting) == (1, 0, 1)
    bench.refuse(other, OUT_OF_ORDER)
    bench.advance()
    assert [number(waiting), number(other)] == [(1, 2, 0), (1, 2, 1)]


def test_other_partitions_go_on_in_the_old_epoch_until_they_are_settled(bench: Bench) -> None:
    bench.start()
    bench.ack(bench.send(partition=1))
    other = bench.send(partition=1)
    bench.refuse(bench.send(), OUT_OF_ORDER)
    bench.advance()
    assert bench.manager.producer_epoch == 1
    assert not bench.manager.may_drain(bench.batch(partition=1))
    bench.refuse(other, 7)
    assert bench.manager.may_drain(other)
    bench.manager.number(other)
    assert number(other) == (1, 0, 1)
    bench.ack(other)
    assert number(bench.send(partition=1)) == (1, 1, 0)


def test_a_refused_batch_leaves_a_gap_that_a_new_epoch_closes(bench: Bench) -> None:
    bench.start()
    first, second = bench.send(), bench.send()
    bench.give_up(first)
    assert bench.refuse(second, OUT_OF_ORDER)
    bench.advance()
    assert number(second) == (1, 1, 0)


def test_a_batch_given_up_on_the_wire_stops_new_ones_until_all_is_settled(bench: Bench) -> None:
    bench.start()
    lost, later = bench.send(), bench.send()
    bench.give_up(lost, on_wire=True)
    assert not bench.manager.may_drain(bench.batch())
    bench.ack(later)
    bench.advance()
    assert bench.manager.producer_epoch == 0, "later numbers were taken, so these were too"
    assert number(bench.send()) == (1, 0, 3)


def test_a_batch_given_up_unanswered_with_nothing_after_it_takes_a_new_epoch(bench: Bench) -> None:
    bench.start()
    lost = bench.send()
    lost.may_be_written = True
    bench.give_up(lost)
    bench.advance()
    assert number(bench.send()) == (1, 1, 0)


def test_behind_an_unresolved_batch_only_the_very_next_takes_a_new_epoch(bench: Bench) -> None:
    bench.start()
    lost, second, third = bench.send(), bench.send(), bench.send()
    bench.give_up(lost, on_wire=True)
    assert bench.refuse(third, OUT_OF_ORDER)
    bench.advance()
    assert bench.manager.producer_epoch == 0
    assert bench.refuse(second, OUT_OF_ORDER)
    bench.advance()
    assert [number(second), number(third)] == [(1, 1, 0), (1, 1, 1)]
    bench.ack(second)
    bench.ack(third)
    assert number(bench.send()) == (1, 1, 2)


@pytest.mark.parametrize(("log_start_offset", "epoch"), [(-1, 0), (7, 1)])
def test_a_forgotten_producer_is_tried_again(
    bench: Bench, log_start_offset: int, epoch: int
) -> None:
    bench.start()
    batch = bench.send()
    assert bench.refuse(batch, UNKNOWN_PRODUCER_ID, log_start_offset)
    bench.advance()
    assert batch.numbers[1] == epoch


def test_of_a_forgotten_producer_too_what_may_be_in_the_log_is_not_numbered_anew(
    bench: Bench,
) -> None:
    bench.start()
    first, second = bench.send(), bench.send()
    unanswered(first, second)
    assert not bench.refuse(first, UNKNOWN_PRODUCER_ID, 7)
    bench.give_up(first)
    assert bench.refuse(second, UNKNOWN_PRODUCER_ID, 7)
    bench.advance()
    assert number(second) == (1, 1, 0)


def test_after_the_last_epoch_comes_a_new_id(bench: Bench) -> None:
    bench.manager.producer_epoch = 32_767
    bench.start()
    batch = bench.send()
    bench.refuse(batch, OUT_OF_ORDER)
    bench.advance()
    assert number(batch) == (2, 0, 0)


def test_parts_share_out_the_numbers_of_what_was_split(bench: Bench) -> None:
    bench.start()
    whole, later = bench.send(5), bench.send(1)
    parts = [bench.batch(2), bench.batch(3)]
    bench.manager.split(whole, parts)
    assert [number(part) for part in parts] == [(1, 0, 1), (1, 0, 3)]
    for batch in (*parts, later):
        waiting = [each for each in (*parts, later) if bench.manager.may_drain(each)]
        assert waiting == [batch], "only the oldest without an outcome goes"
        bench.ack(batch)


def test_nothing_is_sent_beside_the_first_batch_of_a_partition(bench: Bench) -> None:
    first = bench.send()
    assert not bench.manager.may_drain(bench.batch())
    bench.ack(first)
    assert bench.manager.may_drain(bench.batch())


def test_four_batches_at_most_follow_one_without_an_outcome(bench: Bench) -> None:
    bench.start()
    oldest = bench.send()
    for _ in range(4):
        bench.ack(bench.send())
    assert not bench.manager.may_drain(bench.batch())
    bench.ack(oldest)
    assert bench.manager.may_drain(bench.batch())


def test_an_id_is_asked_for_until_it_is_given() -> None:
    bench = Bench.__new__(Bench)
    bench.ids = Ids()
    bench.ids.script = [14, errors.Network("gone"), 15]
    settings = complete(parse(PRODUCER), in_process=False)
    bench.manager = IdempotentSequences(bench.ids, settings)
    pauses = []
    while not bench.manager.may_send:
        delay = bench.advance()
        if delay is not None:
            pauses.append(delay)
            bench.ids.runtime.clock.advance(delay)
    assert all(
        0.8 * want <= got <= 1.2 * want for want, got in zip((100, 200, 400), pauses, strict=True)
    )


def test_an_id_that_is_refused_for_good_is_an_error_and_asked_for_again() -> None:
    bench = Bench.__new__(Bench)
    bench.ids = Ids()
    bench.ids.script = [31]
    settings = complete(parse(PRODUCER), in_process=False)
    bench.manager = IdempotentSequences(bench.ids, settings)
    with pytest.raises(errors.ClusterAuthorizationFailed):
        bench.advance()
    bench.ids.runtime.clock.advance(1000)
    bench.advance()
    assert bench.manager.may_send


def test_a_new_id_with_the_epoch_of_the_old_one_counts_from_0(bench: Bench) -> None:
    bench.start()
    bench.ack(bench.send(partition=1))
    bench.manager.producer_epoch = 32_767
    bench.refuse(bench.send(partition=1), OUT_OF_ORDER)
    bench.advance()
    assert bench.manager.producer_id == 2
    assert number(bench.send()) == (2, 0, 0)


def test_the_gap_of_a_former_epoch_is_not_that_of_the_next(bench: Bench) -> None:
    bench.start()
    refused = bench.send()
    assert bench.refuse(refused, OUT_OF_ORDER)
    bench.advance()
    assert number(refused) == (1, 1, 0)
    bench.ack(refused)
    for _ in range(3):
        bench.ack(bench.send())
    unanswered_one, lost = bench.send(), bench.send()
    unanswered(unanswered_one)
    bench.give_up(lost)
    bench.advance()
    assert number(unanswered_one) == (1, 1, 4), "it may be in the log"
