"""Transactions: which producer owns a transactional id, and the decisions of its transactions.

states                   the states, and the states from which each may be entered
transaction_metadata     the state of one transactional id, and its record
transaction_shard        the ids of one partition of `__transaction_state`
initialize               InitProducerId: a new epoch, which fences earlier producers
registration             AddPartitionsToTxn, AddOffsetsToTxn; verification
ending                   EndTxn: the client's decision
markers                  sending the decision to every partition
views                    ListTransactions, DescribeTransactions
transaction_coordinator  finds the shard of an id
"""
