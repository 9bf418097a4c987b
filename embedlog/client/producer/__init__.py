"""The producer: from `send` to the accumulator, the sender, and the outcome."""
