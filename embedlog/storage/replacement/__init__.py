"""Closed segments written anew by other processes, with the offsets they have.

A maintenance job erases keys, changes the compression or joins small batches. Its tasks read closed
segments without a lock and write what shall be in their place; the owner of the data directory
swaps it in:

    rewrite     tasks                read a segment, write a staged file           `rewriting`
    hand over   the committer        a manifest of the kind "replace"              `manifest`
    check       the owner, no lock   is the segment still the one that was read;   `checks`
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
