"""Helpers that several tests share: foreign clients and tools, found by package name."""
