"""From a queue's share group to the hands of its workers, and back."""
