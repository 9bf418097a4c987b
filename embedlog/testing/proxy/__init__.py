"""A proxy in front of a real cluster, with the rules, the timeline and the toxics of the test kit.

    with Proxy("kafka-1:9092,kafka-2:9092") as proxy:
        my_service(proxy.bootstrap_servers)

The proxy has an address of its own for each broker of the cluster, and puts these addresses into
every answer that names brokers. Clients therefore never leave it.
"""
