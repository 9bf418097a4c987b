"""The state of groups, partitions, transactions and connections, as values for tests.

running_brokers  the running brokers, their metadata and their partitions
brokers          operations of their coordinators
group_values     `GroupValue`: one group at one moment
groups           reading it
lag              the records that a group has not read yet
log_records      counting and finding records in a log
partition        `Partition`: the handle of a partition
transactions     `TransactionValue`: one transactional id at one moment
connections      `ConnectionValue`: one client's connection
"""
