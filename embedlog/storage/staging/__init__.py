"""Taking in what other processes have written: staged batches, committed all or none.

Somebody who writes much (a job of many tasks) does not send records through the owner of the data
directory. Its tasks write finished batches to files of a staging area in that directory, and one
process, the committer, hands the owner a manifest that names them. The owner gives the batches
offsets and lets the logs go on with them:

    stage       tasks                a file of batches with offsets from 0, synced     `staging`
    hand over   the committer        a manifest in the inbox                           `exchange`
    check       the owner, no lock   every batch of every file, its checksum too       `staged_file`
    prepare     the owner            a record of the ranges that the files will fill   `commit_file`
    place       the owner            rename files in, append the small ones            `placing`
    publish     the owner            one rename makes the record say "done"            `commit_file`
    answer      the owner            the committer learns the ranges, or why not       `exchange`

Base offset and leader epoch lie outside a batch's checksum, so a staged file becomes a segment by
patching twelve bytes a batch and a rename. Its indexes are made from the headers in that pass: one
entry per staged batch costs nothing, and nobody has to believe an index that a task has written.

What is promised:

- All or none, whatever dies when. A crash before the record is prepared leaves logs as they were,
  and the manifest is taken again. A crash behind it is rolled forward when the directory is next
  opened, before anybody reads or writes; where that is impossible it is rolled back.
- Once. A commit of a named application has a version; one that is not above the last version of
  that application is answered "done already", and its files are removed. The newest
  `APPLICATIONS_MAX` applications are remembered.
- Committed is durable, whatever the topics' durability: all below it is synced before.
- Readers of other processes (`embedlog.open_reader`) end before the ranges of a commit until its
  record says "done". That is one rename, so at any moment all partitions show it or none does. A
  reader looks at partitions one after the other, though, and the commit may come in between:
  `LogDirectoryReader.snapshot` looks at several of them as of one moment.
- Readers of the owner's process and of its listeners see it when the high watermarks are raised:
  of all partitions in a row, without a file call in between, under all their partition locks. An
  error or a crash never leaves some raised for good. Between two of them a Fetch may be answered
  (readers take no locks), as it may between two partitions' markers of a Kafka transaction.

# Replacement: closed segments that another process rewrote, at the offsets they have.

A maintenance job erases keys, changes the compression or joins small batches. Its tasks read closed
segments without a lock and write what shall be in their place; the owner of the data directory
swaps it in:

    rewrite     tasks                read a segment, write a staged file           `rewriting`
    hand over   the committer        a manifest of the kind "replace"     `replacement_manifest`
    check       the owner, no lock   is the segment unchanged since the read;  `replacement_checks`
                                     are producers, markers and epochs the same
    swap        the owner, its lock  by the cleaner's own swap, one by one         `replacer`

The staged file is copied while it is checked: a task that was given up may still write to it, and
a crash before the swap leaves it to the next owner, who takes the manifest again.

- A segment that changed, was compacted or removed meanwhile refuses the whole manifest, and nothing
  is changed. The job can be run again.
- Every batch of a producer stays, if only as its header: sequences, open and aborted transactions
  and their markers are what they were. So are leader epochs.
- Where offsets go there may be gaps from then on: that is kept, and synced, before the first swap.
"""
