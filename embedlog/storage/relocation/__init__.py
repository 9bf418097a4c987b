"""Moves of logs between the data directories of a broker (Kafka's AlterReplicaLogDirs, KIP-113).

    step        locks            effect                                                file
    copy        none             segments byte for byte into `<log>.<uuid>-future`     `future_log`
    the rest    the log's        the last bytes, and the files beside the segments     `future_log`
    commit      the log's        the copy is renamed to the log's name; the `Log`      `relocation`
                                 continues with the copy's files
    put away    both managers'   the former directory is removed                       `relocation`

`Relocations` is the duty that makes the moves, slice by slice. `leftovers` cleans up after a crash,
when the directories are opened.

- No record is decoded. If a segment is compacted, cut or removed during the copy, the log has
  another `Segment` object in its place, whose file is copied from the start.
- Everything is synced before the copy gets the log's name, at every durability level, so that
  durable records stay durable. The rename is the commit.
- The `Log` stays the same object for all its users. Readers of a former segment continue with the
  bytes of the copy once the former file has no name any more.
- A crash between the commit and the removal of the former directory leaves two equal directories.
  `leftovers` decides which one is removed.
- A move that a crash interrupts before the commit begins again when the directory is next opened.
"""
