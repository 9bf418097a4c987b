"""The timeline: everything that happened to a cluster, on one axis, with the reasons.

    with kafka.record() as log:
        my_service(kafka.bootstrap_servers)
    assert log.count("Metadata") == 1
    print(log)

    +0.0123 request     broker 1 "svc": Produce 13 of 127.0.0.1:40112, orders-0, 0.4 ms
    +0.0214 rebalance   preparing to rebalance group g ... (reason: adding new member svc-1)

Requests come from a stage before the brokers; rebalances, elections, fences and time-outs from the
log lines of the brokers, which name their reasons.
"""
