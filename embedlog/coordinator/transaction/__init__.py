"""Transactions: which producer of a transactional id is the living one, and what it has decided.

states                   the states, and from which one each may be entered
transaction              what is known of one transactional id; its record
transaction_shard        the ids of one partition of `__transaction_state`
initialize               InitProducerId: an epoch of one's own, a fence for those before
registration             AddPartitionsToTxn, AddOffsetsToTxn; verification
ending                   EndTxn: the decision of a client
markers                  telling every partition the decision, until all have it
views                    ListTransactions, DescribeTransactions
transaction_coordinator  where the ids of a broker live
"""
