"""`ShareConsumer`: a member of a share group, which acknowledges records one by one (KIP-932)."""
