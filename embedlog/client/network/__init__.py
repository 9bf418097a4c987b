"""Requests over the network: connections to nodes, and the transport made of them."""
