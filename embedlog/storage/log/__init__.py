"""The log of one partition: append, read, roll, truncate, delete, and the state beside segments."""
