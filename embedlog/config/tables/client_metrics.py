"""Settings of a client metrics subscription."""

TABLE = """
interval.ms int 300000 - cluster-wide
    Time between two pushes of a client that matches.
match list "" - cluster-wide
    Conditions a client must meet, as key=regular expression; none means every client.
metrics list "" - cluster-wide
    Prefixes of the metrics wanted; * means all, none means none.
"""
