"""Kafka's messages as declarations, one file per API: data only, no logic.

Import the file of the API you need, or ask `wire.registry`.

embedlog does not serve every API: only the tests load about 40 of the 89 files (share and streams
groups, ACLs, quotas, delegation tokens, SCRAM credentials, the Raft quorum). They stay because
`wire` is a library of the whole client protocol.
"""
