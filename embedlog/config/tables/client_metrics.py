"""Settings of a client metrics subscription.

The format is drawn in `embedlog.config.definitions`.
"""

TABLE = """
interval.ms int 300000 - cluster-wide
match list "" - cluster-wide
metrics list "" - cluster-wide
"""
