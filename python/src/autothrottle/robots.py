"""Allow and Disallow of robots.txt, by RFC 9309.

.. code-block:: python

    from autothrottle import Throttle
    from autothrottle.robots import rules

    throttle = Throttle(robots={"user_agent": "my-bot", "rules": rules})
"""

from __future__ import annotations

from collections.abc import Callable

from ._native import robots_allow, robots_rules

__all__ = ["rules"]


def rules(robots_url: str, text: str, user_agent: str) -> Callable[[str], bool]:
    """Which URLs a robots.txt allows: what the file does not mention is allowed."""
    found = robots_rules(text, user_agent)
    return lambda url: robots_allow(found, url)
