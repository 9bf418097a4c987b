"""Writing a DataFrame, or a stream of them, to topics: `format("embedlog")` as a sink.

    with `path`: exactly once
        task         partitions its rows, writes finished batches to staged files
        committer    hands one manifest to the owner of the directory, or is the owner itself
        the owner    gives offsets, renames the files in, shows all partitions at once

    with `kafka.bootstrap.servers` and `kafka.transactional.id`: exactly once
        task         gives its rows to the committer
        committer    sends them all in one transaction, with the version; see `transactional`

    with only `kafka.bootstrap.servers`: at least once
        task         sends its rows with an idempotent producer, and waits for all of them

A stream's batch is committed once per (query id, batch id), a batch job once per (`txnAppId`,
`txnVersion`) where these are given, and else once per job that succeeds. See
`embedlog.storage.staging` for what readers see, and when.

Over the wire without a transactional id a task that is run again sends its rows again: idempotence
ends with its producer.
"""
