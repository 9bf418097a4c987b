"""What makes a batch count once, and several batches as one: sequences and transactions."""
