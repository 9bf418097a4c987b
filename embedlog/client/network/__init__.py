"""Requests over the network: connections to nodes, and the transport that uses them."""
