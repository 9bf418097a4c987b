"""Committing files that other processes wrote: new records, or rewritten closed segments.

A job of many tasks does not send its records through the owner of the data directory. Its tasks
write files in a staging area of that directory. Then one process of the job, the committer, hands
the owner a `manifest` through the `exchange` (files and renames). The owner commits all files or
none, and answers. There are two kinds of manifests.

A commit adds staged batches to the ends of logs:

    stage       tasks                a file of batches with offsets from 0, synced     `writer`
    hand over   the committer        a manifest in the inbox                           `exchange`
    check       the owner, no lock   every batch of every file, and its checksum       `staged_file`
    prepare     the owner            a record of the ranges that the files will fill   `commit_file`
    place       the owner            rename files in, append the small ones            `placing`
    publish     the owner            one rename makes the record say "done"            `commit_file`
    answer      the owner            the offset ranges, or the reason of a refusal     `exchange`

Base offset and leader epoch lie outside a batch's checksum. So a staged file becomes a segment by
patching twelve bytes in each batch, and a rename. The pass that patches also builds the indexes
from the batch headers, so no task's index has to be trusted. The owner promises:

- All or none. After a crash before the record is prepared the logs are unchanged, and the next
  owner takes the manifest again. After a later crash the next open of the directory finishes the
  commit before anybody reads or writes, or rolls it back if it cannot be finished.
- Once. A commit of a named application has a version. If the version is not above the application's
  last one, the answer is "done already", and the files are removed. The newest `APPLICATIONS_MAX`
  applications are remembered.
- A commit is durable, whatever the topics' durability: the committed records and all records below
  them are synced before the record says "done".
- Readers in other processes (`embedlog.open_reader`) end before the ranges of a commit until its
  record says "done". The record changes by one rename, so at any moment all partitions show the
  commit or none does. A reader that looks at partitions one after the other may see the commit in
  the later ones only; `LogDirectoryReader.snapshot` shows several partitions at one moment.
- Consumers in the owner's process, and clients of its listeners, see the commit when the high
  watermarks rise. The owner raises the high watermarks of all partitions in a row, without a file
  call in between, holding all partition locks. An error or a crash never leaves only some of them
  raised for good. A Fetch may be answered between two of them, because readers take no locks; Kafka
  has the same between two partitions' markers of a transaction.

A replacement swaps closed segments for files with the same offsets. A maintenance job makes these
files to erase keys, change the compression or join small batches:

    rewrite     tasks                read a segment without a lock, write a file       `rewriting`
    hand over   the committer        a manifest of the kind "replace"                  `exchange`
    check       the owner, no lock   the segment has not changed since the task read   `replacer`,
                                     it; the new file has the same producer batches,
                                     `segment_facts`
                                     markers and leader epochs
    swap        the owner, under the one segment after the other, as the cleaner does  `replacer`
                partition lock

The owner copies each staged file while it checks it, because a task that was given up may still
write to the file. After a crash before the swap, the next owner takes the manifest again. The owner
promises:

- If a segment was changed, compacted or removed meanwhile, the whole manifest is refused, and
  nothing is changed. The job can be run again.
- Every batch of a producer stays, if only as its header: sequences, open and aborted transactions,
  their markers and the leader epochs are unchanged.
- Before the first swap the owner stores and syncs that the log may have gaps, because removed
  records may leave some.
"""
