"""`format("embedlog")` as a sink: writing a DataFrame, or a stream of them, to topics.

    with `path`: exactly once
        task         partitions its rows and writes full batches to staged files
        committer    hands one manifest to the directory's owner, or becomes the owner
        owner        assigns offsets, renames the files into the logs, shows all partitions at once

    with `kafka.bootstrap.servers` and `kafka.transactional.id`: exactly once
        task         returns its rows to the committer
        committer    sends all rows and the version in one transaction; see `transactional`

    with only `kafka.bootstrap.servers`: at least once
        task         sends its rows with an idempotent producer and waits for all of them

A stream's batch is committed once for each (query id, batch id). A batch job is committed once for
each (`txnAppId`, `txnVersion`) if these are given, else once for each run that succeeds.
`embedlog.storage.staging` explains what readers see, and when.

Over the wire without a transactional id, a task that Spark runs again sends its rows again:
idempotence ends with its producer.
"""
