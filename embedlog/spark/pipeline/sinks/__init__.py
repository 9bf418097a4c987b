"""How rows of a batch are written: to tables, topics and the console."""
