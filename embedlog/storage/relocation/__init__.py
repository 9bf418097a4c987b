"""Moves of logs between the data directories of a broker (Kafka's AlterReplicaLogDirs, KIP-113).

    copy        without a lock   segments byte for byte into `<log>.<uuid>-future`     `future_log`
    the rest    the log's locks  the last bytes, and the files beside the segments     `future_log`
    commit      the log's locks  the copy takes the log's name, and the log its files  `relocation`
    put away    both managers'   the former directory is removed                       `relocation`

`Relocations` makes the moves as a duty, slice by slice; `leftovers` tidies up when directories are
opened.

- No record is decoded. A segment that was compacted, cut or removed during the copy is then another
  `Segment`, and is copied again.
- Everything is synced before the copy takes the log's name, at every level: durable records stay
  durable. That name is the commit.
- The `Log` stays the same object for all its users. Readers of a former segment continue with the
  bytes of the new one, once the former's name is gone.
- A crash between the commit and the removal of the former directory leaves two equal directories:
  `leftovers` decides which one goes.
- A move that a crash interrupts begins again when its directory is next opened.
"""
