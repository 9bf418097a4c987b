"""Share groups on the leader of a partition: the members that have its records, and their locks.

    delivery            the states of a record, and the table of its moves
    in_flight window    the records between the start offset and the last acquired one
    acquisition         which records a fetch gets
    key_order           which records a fetch may get if keys have an order
    acknowledgement     what members say about their records
    metrics             numbers of a share partition
    share_partition     one partition for one group: its lock, its loading, its timers
    log_read            batches of the log, as views
    interrupts          Ctrl-C inside the work
    state_writer        moves that wait for the share coordinator
    settlement          their end, when they are stored or not
    share_sessions      what a member fetches, by (group, member)
    share_fetch         a fetch that may wait
    dead_letters        letters about records that were given up; letter_records makes them
    sharing             all of it, for the broker

Records move under the lock of their share partition. A move that members can see waits until the
share coordinator has stored it.
"""
