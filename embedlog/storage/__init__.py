"""The log on disk: segments, indexes, producer state, recovery, retention, in Kafka's formats.

What other packages use of it:

    brokers     `data_directories`, `directory.log_manager`, `log.log.Log`, `log_config`,
                `log.retention.free_below`, `log_values`, `degradation`, `events`, `watched_files`,
                `validation.origin`, `validation.record_set`, `producers.entry`, `relocation`,
                `directory.preparation`, `directory.meta_properties`, `state_files.log_dirs`
    followers   `replica.append`, `replica.truncation`
    replaying   `log.checked_read`
    commits     `staging.exchange`, `.adopter`, `.replacer`, `.manifest`, `state_files.commit_file`
    readers     `foreign.log`, `.offset_range`, `.committed_batches`, `.segment.Batch`,
                `state_files.retention_pins`, `.archived_offsets`, `.commit_file`
    Spark       what readers and commits use, and: `staging.writer.StagedWriter`,
                `staging.rewriting`, `state_files.staged_layout`, `.partition_metadata`,
                `verification.directory`, `.verified_segments`, `directory.meta_properties`
    the command `verification`, `recovery.salvage`, `directory.checkpoints`, `log.gaps`,
                `state_files.clean_shutdown`, `.log_dirs`, `foreign`
    everybody   `paths`, `directory.data_path`

Nothing in here knows the protocol's messages: from `wire` it imports only `wire.records`.

Unless a docstring says otherwise, these errors are raised: OSError if the disk refuses (a `Log`
raises KafkaStorageError and is then unchanged or poisoned); CorruptRecord for damaged files;
RecordsError for records that cannot be read.
"""
