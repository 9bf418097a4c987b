"""Changes of groups and transactions on demand of a test.

desk                `Desk`: makes the handles of one cluster
group               `Group`: a group's values and the changes of it
group_changes       the operations on a group's shard
pins                target assignments that a test pins
transaction         `Transaction`: the values and changes of a transactional id
transactions        `Transactions`: the list of all ids, and transactions that stop half-way
markers             the markers of held and other partitions
"""
