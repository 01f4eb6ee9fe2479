"""One limit for many processes: the protocol of ``docs/shared.md``, as it is in ``js/shared/``.

One process, the *writer*, runs the engine; all of them, the writer too, are *members* that ask it. A process
in Node and one in Python are members of the same group. The way of one request:

1. ``host.py``: what a scheduler asks in place of an engine. It runs the machine of ``shared/``, in Rust.
2. ``redis_io.py`` carries what the machine says; ``redis_transport.py`` has the messages and the lease.
3. The writer's machine asks its engine; a grant comes the same way back.

All of this runs where the scheduler runs: in one loop, or under one lock. A callback of another thread goes
through ``EventLoop.post`` first.
"""
