"""A follower's side of replication: what it fetches, from whom, and where its log is cut."""
