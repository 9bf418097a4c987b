"""The process that is killed: it opens a directory, checks its content, and writes more."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator

import embedlog
from embedlog.errors import KafkaError, TopicAlreadyExists
from tests.crash import workload
from tests.crash.child import Say
from tests.crash.ledger import Ledger
from tests.crash.workload import KEYED, LOG, SHARED, SIZED, Content, content

_WAIT_S = 60.0
_KEPT_COUNT = 120
Work = Callable[[], object]


class Writer:
    """One life of a writer: `verify` checks the ledger, `step` or `run_threads` write."""

    def __init__(self, directory: str, ledger: Ledger, seed: int, say: Say) -> None:
        """Open the directory; a crash may come even here."""
        self.ledger = ledger
        self.chance = random.Random(seed)
        self._directory = directory
        self._say_line = say
        self.cluster = embedlog.open(
            directory, durability=ledger.durability, config=workload.BROKER
        )
        self._generation = max((made.generation for made in ledger.made.values()), default=0)
        self._ends: dict[str, int] = {}
        self._favourite = -1

    def say(self, text: str) -> None:
        self._say_line(text.encode())

    def broken(self, text: str) -> None:
        """Report a broken promise."""
        self.say(f"broken {text}")

    # Checks

    def verify(self) -> None:
        """Check everything through the API; report problems, and the state that was found."""
        there = set(self.cluster.topics)
        for name in self.ledger.topics - there:
            self.broken(f"the topic {name} is gone")
        with self.cluster.consumer(fetch_max_wait_ms=1) as consumer:
            for name in [name for name in workload.TOPICS if name in there]:
                self._verify_records(consumer, name)
        with self.cluster.admin() as admin:
            self._verify_offsets(admin)
            self._verify_settings(admin, there)
        self._verify_made(there)
        for degradation in self.cluster.health():
            # Half a batch of the last life is truncated, and may be quarantined.
            if degradation.kind not in {"cut", "quarantined"}:
                self.broken(f"{degradation}")

    def _read(
        self, consumer: embedlog.Consumer, partition: tuple[str, int], start: int
    ) -> Iterator[embedlog.ConsumerRecord]:
        consumer.assign([partition])
        consumer.seek(partition, start)
        (end,) = consumer.end_offsets([partition]).values()
        deadline = time.monotonic() + _WAIT_S
        while consumer.position(partition) < end:
            yield from consumer.poll(100)
            if time.monotonic() > deadline:
                self.broken(f"{partition}: a reader stands at {consumer.position(partition)}")
                return

    def _verify_records(self, consumer: embedlog.Consumer, topic: str) -> None:
        ledger, partition = self.ledger, (topic, 0)
        (start,) = consumer.beginning_offsets([partition]).values()
        (end,) = consumer.end_offsets([partition]).values()
        self._ends[topic] = end
        acked = ledger.ends[topic]
        known = ledger.starts[topic]
        if end < acked.low or (topic != SHARED and end > acked.high):
            self.broken(f"{topic} ends at {end}, acknowledged are {acked}")
        if topic == LOG and not known.holds(start):
            self.broken(f"{topic} begins at {start}, deletions were {known}")
        if start < known.low or (topic == KEYED and start):
            self.broken(f"{topic} begins at {start}, behind {known}")
        # Older records are checked by the inspector, which reads every new file completely.
        first = max(start, acked.low - _KEPT_COUNT)
        expected = first
        for record in self._read(consumer, partition, first):
            if record.offset != expected and topic != KEYED:
                self.broken(f"{topic}: offset {record.offset} where {expected} was expected")
            expected = record.offset + 1
            self._verify_record(topic, record.offset, Content(record.key, record.value))
        if expected < end:
            self.broken(f"{topic}: a reader gets records up to {expected}, the end is {end}")
        self.say(f"seen ! {topic} {start} {end}")

    def _verify_record(self, topic: str, offset: int, found: Content) -> None:
        number = offset
        if topic == SHARED:
            number = workload.number_in(topic, found.value)
            if self.ledger.shared.get(offset, number) != number:
                expected = self.ledger.shared[offset]
                self.broken(f"{topic} at {offset}: {number}, acknowledged was {expected}")
        if found != content(topic, number):
            shown = str(found.value)[:40]
            self.broken(f"{topic} at {offset}: {shown} of {len(found.value or b'')} bytes")

    def _verify_offsets(self, admin: embedlog.Admin) -> None:
        results = admin.list_group_offsets(workload.GROUPS)
        for group in workload.GROUPS:
            known = self.ledger.offsets[group]
            try:
                found = results[group].get(embedlog.TopicPartition(LOG, 0))
            except KafkaError as error:
                self.broken(f"{group}: {error!r}")
                continue
            offset = 0 if found is None else found.offset
            if not known.holds(offset):
                self.broken(f"{group} stands at {offset}, committed were {known}")
            known.settle(offset)
            self.say(f"offset ! {group} {offset}")

    def _verify_settings(self, admin: embedlog.Admin, there: set[str]) -> None:
        for topic in [name for name in workload.TOPICS if name in there]:
            resource = embedlog.ConfigResource(embedlog.ResourceType.TOPIC, topic)
            entries = admin.describe_configs([resource])[resource]
            for name, value in workload.TOPICS[topic].items():
                if entries[name].value != value:
                    self.broken(f"{topic}: {name} is {entries[name].value}, it was made {value}")
            if topic != LOG:
                continue
            entry = entries[workload.CHANGED_SETTING]
            found = 0 if entry.is_default else int(entry.value)
            if not self.ledger.setting.holds(found):
                self.broken(f"{topic}: {entry.name} is {found}, set were {self.ledger.setting}")

    def _verify_made(self, there: set[str]) -> None:
        for name in workload.MADE:
            self.say(f"found ! {name} {int(name in there)}")
            made = self.ledger.made.get(name)
            if name not in there:
                if made is not None and made.is_sure and made.is_there:
                    self.broken(f"the topic {name} of generation {made.generation} is gone")
                continue
            if made is None or (made.is_sure and not made.is_there):
                self.broken(f"the topic {name} is there, it was deleted: {made}")
                continue
            with self.cluster.consumer(fetch_max_wait_ms=1) as consumer:
                found = [r.value for r in self._read(consumer, (name, 1), 0)]
            expected = [b"%d|%d" % (made.generation, n) for n in range(len(found))]
            if found != expected or not made.records.holds(len(found)):
                self.broken(f"{name}: {found}, acknowledged were {made}")

    # Writing until the kill

    def prepare(self) -> None:
        """Create the missing topics, and the clients."""
        for name, settings in workload.TOPICS.items():
            self.say(f"topic ? {name}")
            with contextlib.suppress(TopicAlreadyExists):
                self.cluster.create_topic(name, 1, config=settings)
            self.say(f"topic ! {name}")
        self._plain = self.cluster.producer(enable_idempotence=False)
        self._idempotent = self.cluster.producer(enable_idempotence=True)
        self._admin = self.cluster.admin()
        self._consumers = {
            group: self.cluster.consumer(group_id=group, enable_auto_commit=False)
            for group in workload.GROUPS
        }
        self._made_next: dict[str, tuple[int, int]] = {}
        self._shared_lock = threading.Lock()
        self._shared_next = self.ledger.shared_next

    def step(self) -> None:
        """Do a random step, most often the life's favourite one, so that it is killed at every
        place.
        """
        works = self._records + self._others
        if self._favourite < 0:
            self._favourite = self.chance.randrange(len(works))
        is_favourite = self.chance.random() < 0.5
        work = works[self._favourite] if is_favourite else self.chance.choice(works)
        work()

    def run_threads(self, seconds: float) -> None:
        """Do everything at once, in five threads."""
        until = time.monotonic() + seconds
        threads = [
            threading.Thread(target=self._repeat, args=(work, until), daemon=True)
            for work in (*self._records, self._write_shared)
        ]
        for thread in threads:
            thread.start()
        self._repeat(self._other, until)
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """End cleanly."""
        clients = (self._plain, self._idempotent, self._admin, *self._consumers.values())
        for client in clients:
            client.close()
        self.cluster.close()

    def _repeat(self, work: Work, until: float) -> None:
        while time.monotonic() < until:
            try:
                work()
            except BaseException as error:
                self.broken(f"{work} raised {error!r}")
                raise

    @property
    def _records(self) -> tuple[Work, ...]:
        return (self._write_log, self._write_sized, self._write_keyed, self._write_shared)

    @property
    def _others(self) -> tuple[Work, ...]:
        return (
            self._commit,
            self._change_setting,
            self._delete_records,
            self._make_or_delete,
            self._write_made,
            self._maintain,
        )

    def _other(self) -> None:
        self.chance.choice(self._others)()

    def _write_log(self) -> None:
        self._write(self._idempotent, LOG)

    def _write_sized(self) -> None:
        self._write(self._plain, SIZED)

    def _write_keyed(self) -> None:
        self._write(self._plain, KEYED)

    def _write(self, producer: embedlog.Producer, topic: str) -> None:
        """Send some records, as one batch or several, and wait for all."""
        begin = self._ends.get(topic, 0)
        end = begin + 1 + begin % 7
        self.say(f"end ? {topic} {end}")
        futures = []
        for number in range(begin, end):
            key, value = content(topic, number)
            futures.append(producer.send(topic, value, key=key))
        for number, future in enumerate(futures, begin):
            offset = future.result(_WAIT_S).offset
            if offset != number:
                self.broken(f"{topic}: record {number} was acknowledged at {offset}")
            self.say(f"end ! {topic} {number + 1}")
        self._ends[topic] = end

    def _write_shared(self) -> None:
        with self._shared_lock:
            number = self._shared_next
            self._shared_next += 1
        self.say(f"shared ? {number}")
        value = content(SHARED, number).value
        offset = self._plain.send(SHARED, value).result(_WAIT_S).offset
        self.say(f"shared ! {number} {offset}")

    def _commit(self) -> None:
        group = self.chance.choice(workload.GROUPS)
        offset = self.ledger.offsets[group].high + 1
        self.ledger.offsets[group].high = offset
        self.say(f"commit ? {group} {offset}")
        # The text makes commits large, so that their log rolls and is compacted.
        committed = embedlog.OffsetAndMetadata(offset, metadata="x" * (offset * 997 % 4000))
        self._consumers[group].commit({(LOG, 0): committed})
        self.say(f"commit ! {group} {offset}")

    def _change_setting(self) -> None:
        value = self.ledger.setting.high + 1
        self.ledger.setting.high = value
        self.say(f"setting ? {value}")
        resource = embedlog.ConfigResource(embedlog.ResourceType.TOPIC, LOG)
        change = {workload.CHANGED_SETTING: (embedlog.AlterOperation.SET, value)}
        self._admin.incremental_alter_configs({resource: change}).check()
        self.say(f"setting ! {value}")

    def _delete_records(self) -> None:
        start = self._ends.get(LOG, 0) - _KEPT_COUNT
        if start > self.ledger.starts[LOG].high:
            self.ledger.starts[LOG].high = start
            self.say(f"start ? {LOG} {start}")
            self._admin.delete_records({(LOG, 0): start}).check()
            self.say(f"start ! {LOG} {start}")

    def _make_or_delete(self) -> None:
        name = self.chance.choice(workload.MADE)
        if name in self.cluster.topics:
            self.say(f"delete ? {name}")
            self._admin.delete_topics([name]).check()
            self.say(f"delete ! {name}")
        else:
            self._generation += 1
            self.say(f"make ? {name} {self._generation}")
            self.cluster.create_topic(name, 2)
            self.say(f"make ! {name} {self._generation}")
            self._made_next[name] = (self._generation, 0)

    def _write_made(self) -> None:
        there = self.cluster.topics
        for name, (generation, number) in self._made_next.items():
            if name in there:
                self.say(f"made ? {name} {number + 1}")
                value = b"%d|%d" % (generation, number)
                self._plain.send(name, value, partition=1).result(_WAIT_S)
                self.say(f"made ! {name} {number + 1}")
                self._made_next[name] = (generation, number + 1)
                return

    def _maintain(self) -> None:
        self.cluster.maintain()
        self.say("maintained !")
