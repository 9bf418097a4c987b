"""A follower's changes of a log: appending the leader's batches, and truncating the end."""
