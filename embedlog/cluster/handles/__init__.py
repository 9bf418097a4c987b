"""Handles: what a test holds of a cluster, its brokers, disks and partitions."""
