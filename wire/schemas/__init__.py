"""Kafka's messages as declarations, one file for each API, without logic.

Import the file of the API that you need, or find it by API key with `wire.registry`.

embedlog does not serve every API. About 40 of the 89 files are used only by tests (share and
streams groups, ACLs, quotas, delegation tokens, SCRAM credentials, the Raft quorum). They stay
because `wire` is a library of the whole client protocol.
"""
