"""The follower's side of replication: it fetches from leaders, and truncates diverging logs."""
