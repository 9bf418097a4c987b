"""Worker processes that share a directory and are killed: no job is lost, none is worked twice."""
