"""A log as a follower changes it: batches as the leader stamped them, and cuts at its end."""
