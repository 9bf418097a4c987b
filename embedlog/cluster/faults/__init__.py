"""Faults that a test injects: failing and slow disks, cut and slow links between brokers."""
