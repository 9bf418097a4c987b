"""The worker that commits the manifests in an inbox one by one, and answers their committers.

A manifest lists the staged files of one commit. To adopt it is to append its files to the logs.
"""

from __future__ import annotations

from contextlib import ExitStack

from embedlog import errors
from embedlog.broker.broker import Broker
from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.logger import Logger
from embedlog.runtime.files import remove_tree
from embedlog.storage.staging import exchange
from embedlog.storage.staging.adopter import Adopter, CommitTarget
from embedlog.storage.staging.exchange import Answer
from embedlog.storage.staging.manifest import EndsRequest, Manifest, Replacement
from embedlog.storage.staging.replacer import Replacer
from embedlog.storage.state_files.commit_file import DONE

_log = Logger("broker")

_RETRY_MS = 1_000


class CommitWorker:
    """Makes commits for the owner of a data directory: a duty for a thread of its own."""

    def __init__(self, broker: Broker) -> None:
        """Read the file that records the last commit.

        Raises:
            CorruptRecord: the file is damaged.
        """
        self._broker = broker
        self._clock = broker.runtime.clock
        self._files = broker.runtime.files
        self._data = broker.log_manager.first.directory.path
        self._adopter = Adopter(broker.runtime, self._data, self._target)
        leftovers = broker.log_manager.first.leftovers
        self._replacer = Replacer(broker.runtime, self._data, leftovers.remove_files)
        self.is_closed = False

    def resume(self) -> None:
        """Finish a commit that a crash has interrupted: see `Adopter.resume`."""
        self._adopter.resume()

    def run_once(self, _now_ms: int) -> int | None:
        try:
            while not self.is_closed and self.commit_one():
                pass
            if self._replacer.is_pending:
                self._replacer.complete()
        except (OSError, errors.KafkaStorageError) as error:
            _log.warning("commits wait for the disk: %s", error)
            return _RETRY_MS
        return None

    def commit_one(self) -> bool:
        """Commit one manifest and answer it; return False if there is none. Thread-safe.

        Raises:
            OSError: the disk refuses the answer. The next call writes it again.
        """
        with self._adopter.lock:
            ids = exchange.take(self._files, self._data)
            if not ids:
                return False
            last = self._adopter.last
            if last is not None and last.id in ids and last.state == DONE:
                # An earlier owner died between the commit and the answer. Answer now, because the
                # next commit overwrites the record.
                exchange.answer(self._files, self._data, last.id, Answer.of(last))
            else:
                self._answer(ids[0])
            return True

    def sweep(self) -> None:
        """Remove empty directories, and answers that no committer has read."""
        for path in exchange.sweep(self._files, self._data, self._clock.machine_wall_ms()):
            try:
                stat = self._files.stat(path)
                if stat is not None and stat.is_directory:
                    remove_tree(self._files, path)
                else:
                    self._files.remove(path)
            except OSError as error:
                _log.debug("%s cannot be removed yet: %s", path, error)
        self.tidy()

    def tidy(self) -> None:
        if self._broker.log_manager.first.directory.is_held:
            exchange.tidy(self._files, self._data)

    # Steps

    def _answer(self, id: str) -> None:
        """Commit or refuse one taken manifest; set it aside if it cannot be understood."""
        try:
            manifest = exchange.read_taken(self._files, self._data, id)
        except CorruptRecord as error:
            _log.warning("the commit %s was refused: %s", ascii(id), error)
            exchange.refuse(self._files, self._data, id, Answer.refusal(error))
        else:
            exchange.answer(self._files, self._data, id, self._adopt(manifest))

    def _adopt(self, manifest: Manifest | Replacement | EndsRequest) -> Answer:
        began_ms = self._clock.monotonic_ms()
        try:
            if isinstance(manifest, Replacement):
                return self._replace(manifest)
            if isinstance(manifest, EndsRequest):
                return Answer(DONE, self._ends())
            commit = self._adopter.adopt(manifest)
        except (errors.KafkaError, CorruptRecord) as error:
            _log.warning("the commit %s was refused: %s", manifest.id, error)
            return Answer.refusal(error)
        if commit is not None:
            self._tell_readers(manifest)
            _log.info(
                "%r was committed: %d bytes in %d partitions, %d ms",
                manifest,
                sum(file.size for file in manifest.files),
                len(commit.ranges),
                self._clock.monotonic_ms() - began_ms,
            )
        return Answer.of(commit)

    def _replace(self, replacement: Replacement) -> Answer:
        topic_partition = replacement.topic_partition
        span = self._replacer.replace(self._target(topic_partition).log, replacement)
        if replacement.files:
            _log.info("%r: offsets %d to %d", replacement, *span)
        return Answer(DONE, {topic_partition: span})

    def _ends(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return the start offset and the high watermark of each log, all at one moment.

        Requires: the adoption lock.
        """
        manager = self._broker.log_manager
        while True:
            logs = {}
            for topic_partition in manager.partitions():
                try:
                    log = manager.get(topic_partition)
                except errors.KafkaStorageError:
                    continue  # unreachable: `health` names it
                if log is not None:
                    logs[topic_partition] = log
            with ExitStack() as locks:
                for topic_partition in sorted(logs):
                    locks.enter_context(logs[topic_partition].lock)
                if len(manager.logs()) > len(logs):
                    continue  # a log was made meanwhile
                return {
                    each: (log.offsets.log_start_offset, log.offsets.high_watermark)
                    for each, log in logs.items()
                }

    def _tell_readers(self, manifest: Manifest) -> None:
        replica_manager = self._broker.replica_manager
        for each in manifest.partitions:
            partition = replica_manager.partitions.get(each)
            if partition is not None:
                replica_manager.appended(partition, is_awaited=True)
        self._broker.log_manager.tasks.stir()

    def _target(self, topic_partition: TopicPartition) -> CommitTarget:
        """Return the log of a partition, to which files may be committed.

        Raises:
            UnknownTopicOrPartition: this broker has no such partition.
            InvalidTopic: only a coordinator writes to the topic.
            InvalidRequest: other brokers have replicas. They would not get the committed files and
                would keep the replaced ones.
            KafkaStorageError: the log cannot be opened.
        """
        topic = self._broker.image.topics_by_name.get(topic_partition.topic)
        if topic is None:
            raise errors.UnknownTopicOrPartition(f"{topic_partition}: there is no such topic")
        if topic.is_internal:
            raise errors.InvalidTopic(f"{topic_partition} is written by its coordinator only")
        if topic_partition.partition >= len(topic.partitions):
            raise errors.UnknownTopicOrPartition(
                f"{topic_partition}: the topic has {len(topic.partitions)} partitions"
            )
        partition = self._broker.replica_manager.partition(*topic_partition)
        if len(partition.replicas) > 1:
            raise errors.InvalidRequest(
                f"{topic_partition} has replicas on brokers {list(partition.replicas)}: files are "
                "committed to logs of one replica; write to the brokers instead"
            )
        partition.check_leader()
        return CommitTarget(partition.log, partition.leader_epoch)
