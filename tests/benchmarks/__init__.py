"""Speed compared with alternatives, in one run: `python -m tests.benchmarks [name ...]`.

Every table interleaves its rows, takes the best of several rounds and prints ratios: on a shared
machine only ratios inside one run mean something. Nothing here is a test; nothing here asserts.
"""
