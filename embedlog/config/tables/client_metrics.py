"""Settings of a client metrics subscription."""

TABLE = """
interval.ms int 300000 - cluster-wide
    Time between two pushes of a client that fulfils the conditions in match.
match list "" - cluster-wide
    Conditions a client must meet, as key=regular expression; none means every client.
metrics list "" - cluster-wide
    Prefixes of the names of requested metrics. * requests all metrics, an empty list none.
"""
