"""One limit for many processes: the protocol of ``docs/shared.md``, as it is in ``js/shared/``.

One process, the *writer*, runs the engine; all of them, the writer too, are *members* that ask it. A process
in Node and one in Python are members of the same group. The way of one request:

``host.py`` (what a desk asks in place of an engine) → ``member.py`` (its requests, and what was said of them)
→ ``group.py`` (who writes) → ``redis_transport.py`` (messages, the lease) → ``writer.py`` in whichever
process writes → its engine → a grant, and the same way back.

All of this runs where the desk runs: in one loop, or under one lock. The trap is a callback of another
thread: whatever comes from one goes through ``Scheduler.post`` first.
"""
