"""The broker behind sockets: it opens addresses, decodes requests and encodes answers."""
