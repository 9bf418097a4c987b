"""Waits of a test for the cluster: `kafka.wait.group("g", members=2)`.

condition     `Condition`: a wanted state, and the report on the state that was seen instead
groups        conditions of groups: shape, lag, committed offsets, rebalance
partitions    conditions of partitions: records, leader, in-sync replicas
requests      conditions of requests that clients send
others        conditions of transactions, and of a test's own function
wanted        `Wanted`: makes the conditions from a test's arguments, and checks the names
waits         `Waits`: the calls of a test
aio           `AioWaits`: the same calls for asyncio
"""
