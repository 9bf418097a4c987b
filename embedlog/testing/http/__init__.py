"""The small HTTP server of the test kit: the schema registry and the control door run on it.

The server is waitress, in the extra `http`. Its event loop reads whole requests before a thread
works on them, so a slow client holds no thread. It has limits for connections, headers, bodies and
idle clients. It is one wheel of pure Python without dependencies, and it starts in a millisecond.
The other candidates lost for these reasons:

- starlette with uvicorn needs asyncio, five packages and four times the time to import;
- falcon and werkzeug are frameworks that still need a server, and three times the time to import.
  They match decoded paths, but names of subjects may contain an encoded slash;
- bottle has no server for production, and cheroot has four dependencies;
- h11 parses only: sockets, threads and limits would be ours to write;
- http.server of the standard library has no limits, and its documentation warns of it.

Routes and JSON are files of this folder, because a table of patterns is all that they need.
"""
