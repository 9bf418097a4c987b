"""The control door: the calls of `Kafka` as JSON over HTTP, for tests in any language.

`table` lists the calls, `verbs` reads their parameters from the methods' signatures, `door` serves
them, and `openapi` describes them. `embedlog.testing.remote` has the same calls as a Python object.
"""
