"""The commands of `embedlog pipeline` that write to no sink."""
