"""Changes that a follower makes to a log: appends of stamped batches, and cuts at its end."""
