"""Toxics: connections that are slow, thin, cut into pieces, or break.

    with kafka.toxic(latency=0.2, jitter=0.05, direction="to-client"):
        my_service(kafka.bootstrap_servers)

Toxics work below the protocol, on the bytes of connections over sockets. They act on connections
that begin while a toxic is set, and with `cut=True` present connections break, so that clients
connect again.
"""
