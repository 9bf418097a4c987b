"""The writers that Spark calls: `write` in each task, `commit` or `abort` in a process of its own.

Spark                                          so the writers
pickles the writer for the tasks               hold options and a name only
makes a new stream writer for `commit`         put application and version into the messages
runs an attempt twice                          commit only files that a message names
calls `abort` after `commit` raised            keep files that are, or may be, committed
replays a batch with its number                do nothing: the version was committed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

import pyarrow as pa
from pyspark.errors import IllegalArgumentException
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.spark.sink.options import SinkOptions, check_schema, parse
from embedlog.spark.sink.task import SentMessage, StagedMessage, StagingTask, send_batches
from embedlog.storage.directory.data_path import existing_directory
from embedlog.storage.staging import exchange
from embedlog.storage.staging.manifest import Manifest, StagedFile
from embedlog.storage.state_files import staged_layout

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_DIGEST_SIZE = 16


class BatchWriter(DataSourceArrowWriter):
    """Writes one DataFrame: all or nothing, except over the wire without transactions.

    Tasks stage or send their rows. `abort` removes staged files unless they may be committed.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Raises IllegalArgumentException or AnalysisException: see `options`."""
        self._options = _checked(options, schema, overwrite)
        self._job = _job_name(self._options.application, self._options.version)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        options = self._options
        return _write(options, self._job, options.application, options.version, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _commit(self._options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        _abort(self._options, {self._job})


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes a streaming query's batches, once or at least once: see `embedlog.spark.sink`."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Raises `BatchWriter`'s errors. `overwrite` is Spark's word for output mode "complete"."""
        self.options = _checked(options, schema, overwrite)
        self.name = real_runtime().random.uuid().hex()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        query_id, version = _query()
        job = f"{_digest(query_id)}-{version}-{self.name}"
        return _write(self.options, job, query_id, version, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        _commit(self.options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        _abort(self.options, {path.partition("/")[0] for path in _paths(messages)})


def _checked(options: Mapping[str, str], schema: StructType, overwrite: bool) -> SinkOptions:
    if overwrite:
        raise IllegalArgumentException(
            "Save mode Overwrite not allowed for Kafka. Allowed save modes are Append and "
            "ErrorIfExists (default)."
        )
    parsed = parse(options)
    check_schema(schema, parsed)
    if parsed.path:
        existing_directory(real_runtime().files, parsed.path)
    return parsed


def _write(
    options: SinkOptions,
    job: str,
    application: str,
    version: int,
    batches: Iterator[pa.RecordBatch],
) -> WriterCommitMessage:
    if options.is_transactional:
        from embedlog.spark.sink.transactional import RowsMessage, pack

        return RowsMessage(application, version, *pack(batches))
    if not options.path:
        return SentMessage(send_batches(options, batches))
    files = StagingTask(options, job).write(batches)
    return StagedMessage(
        application,
        version,
        [(*file.topic_partition, file.path, file.size, file.count) for file in files],
    )


def _commit(options: SinkOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    if options.is_transactional:
        from embedlog.spark.sink.transactional import RowsMessage, commit_rows

        commit_rows(options, [each for each in messages if isinstance(each, RowsMessage)])
        return
    staged = [each for each in messages if isinstance(each, StagedMessage)]
    files = [
        StagedFile(TopicPartition(topic, partition), path, size=size, count=count)
        for message in staged
        for topic, partition, path, size, count in message.files
    ]
    if not files:
        return
    from embedlog.spark.committer import commit

    application, version = staged[0].application, staged[0].version
    runtime = real_runtime()
    manifest = Manifest(
        runtime.random.uuid().hex(), files, application=application, version=version
    )
    commit(options.path, manifest, timeout_ms=options.commit_timeout_ms)
    _sweep(options.path, application, version)


def _abort(options: SinkOptions, jobs: set[str]) -> None:
    if options.path:
        files = real_runtime().files
        for job in sorted(jobs):
            if not exchange.is_wanted(files, options.path, job):
                exchange.discard(files, options.path, job)
        exchange.tidy(files, options.path)


def _sweep(path: str, application: str, version: int) -> None:
    """Remove files that killed attempts staged for this version and earlier ones."""
    if not application:
        return
    files = real_runtime().files
    prefix = f"{_digest(application)}-"
    for job in staged_layout.names_in(files, path, staged_layout.STAGED):
        number = job.removeprefix(prefix).partition("-")[0]
        is_old = job.startswith(prefix) and number.isdecimal() and int(number) <= version
        if is_old and not exchange.is_wanted(files, path, job):
            exchange.discard(files, path, job)
    exchange.tidy(files, path)


def _paths(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    return [
        path
        for message in messages
        if isinstance(message, StagedMessage)
        for _, _, path, _, _ in message.files
    ]


def _job_name(application: str, version: int) -> str:
    name = real_runtime().random.uuid().hex()
    return f"{_digest(application)}-{version}-{name}" if application else name


def _digest(application: str) -> str:
    return sha256(application.encode()).hexdigest()[:_DIGEST_SIZE]


def _query() -> tuple[str, int]:
    """Return the query id and batch id of the running task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "a stream is written in tasks"
    query_id, batch_id = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    assert query_id is not None, _QUERY_ID
    assert batch_id is not None, _BATCH_ID
    return query_id, int(batch_id)
