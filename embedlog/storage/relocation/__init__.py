"""Moves of logs between the data directories of a broker (Kafka's AlterReplicaLogDirs, KIP-113).

    copy        without a lock   segments byte for byte into `<log>.<uuid>-future`     `future_log`
    the rest    the log's locks  the last bytes, and what is kept beside the segments  `future_log`
    commit      the log's locks  the copy takes the log's name, and the log its files  `relocation`
    put away    both managers'   the former directory is removed                       `relocation`

`Relocations` makes the moves as a duty, slice by slice; `leftovers` tidies up when directories are
opened.

- No record is decoded. A segment that was compacted, cut or removed while it was copied is another
  `Segment` then, and is copied anew.
- Everything is synced before the copy takes the log's name, at every level: what was durable there
  is durable here. That one name is the commit.
- The `Log` stays the same object for all who have it. Who reads a former segment goes on with the
  bytes of the new one, once the former's name is gone.
- A crash between the commit and the removal of the former directory leaves two, which do not
  differ: `leftovers` says which of them goes.
- A move that a crash has cut short begins anew when its directory is next opened.
"""
