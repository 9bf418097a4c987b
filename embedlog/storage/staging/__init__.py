"""Files that other processes wrote, and their commit: new records, or closed segments written anew.

A job of many tasks does not send its records through the owner of the data directory. Its tasks
write files in a staging area of that directory. Then one process, the committer, hands the owner a
`manifest` through the `exchange` (files and renames); the owner commits all files or none, and
answers. Manifests are of two kinds.

A commit adds staged batches to the ends of logs:

    stage       tasks                a file of batches with offsets from 0, synced     `writer`
    hand over   the committer        a manifest in the inbox                           `exchange`
    check       the owner, no lock   every batch of every file, its checksum too       `staged_file`
    prepare     the owner            a record of the ranges that the files will fill   `commit_file`
    place       the owner            rename files in, append the small ones            `placing`
    publish     the owner            one rename makes the record say "done"            `commit_file`
    answer      the owner            the ranges, or the reason of a refusal            `exchange`

Base offset and leader epoch lie outside a batch's checksum, so a staged file becomes a segment by
patching twelve bytes a batch and a rename. Its indexes are made from the headers in that pass: one
entry per staged batch costs nothing, and no task's index has to be trusted. The promises:

- All or none, whatever dies when. After a crash before the record is prepared the logs are as they
  were, and the manifest is taken again. After a later crash the commit is rolled forward when the
  directory is next opened, before anybody reads or writes; if that is impossible it is rolled back.
- Once. A commit of a named application has a version. If the version is not above the application's
  last one, the answer is "done already", and the files are removed. The newest `APPLICATIONS_MAX`
  applications are remembered.
- Committed is durable, whatever the topics' durability: everything below is synced before.
- Readers of other processes (`embedlog.open_reader`) end before the ranges of a commit until its
  record says "done". That is one rename, so at any moment all partitions show the commit or none
  does. A reader looks at partitions one after the other, and the commit may come in between:
  `LogDirectoryReader.snapshot` looks at several of them as of one moment.
- Readers of the owner's process and of its listeners see it when the high watermarks rise: of all
  partitions in a row, without a file call in between, under all their partition locks. An error or
  a crash never leaves only some of them raised for good. A Fetch may be answered between two of
  them (readers take no locks), as between two partitions' markers of a Kafka transaction.

A replacement swaps closed segments for files with the same offsets. A maintenance job makes them to
erase keys, change the compression or join small batches:

    rewrite     tasks                read a segment without a lock, write a file       `rewriting`
    hand over   the committer        a manifest of the kind "replace"                  `exchange`
    check       the owner, no lock   the segment is unchanged since the read; its      `replacer`,
                                     producers, markers and epochs too              `segment_facts`
    swap        the owner, its lock  by the cleaner's own swap, one by one             `replacer`

The staged file is copied while it is checked: a task that was given up may still write to it, and
after a crash before the swap the next owner takes the manifest again. The promises:

- A segment that changed, was compacted or removed meanwhile refuses the whole manifest, and nothing
  is changed. The job can be run again.
- Every batch of a producer stays, if only as its header: sequences, open and aborted transactions
  and their markers are the same. So are leader epochs.
- Removed offsets may leave gaps: that is stored and synced before the first swap.
"""
