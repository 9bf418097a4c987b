"""The follower's side of replication: fetching from leaders, and cutting its logs."""
