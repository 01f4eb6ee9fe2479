"""Allow and Disallow of robots.txt, read by Protego: ``pip install autothrottle[robots]``.

.. code-block:: python

    from autothrottle import Throttle
    from autothrottle.robots import rules

    throttle = Throttle(robots={"user_agent": "my-bot", "rules": rules})
"""

from __future__ import annotations

from collections.abc import Callable

from protego import Protego

__all__ = ["rules"]


def rules(robots_url: str, text: str, user_agent: str) -> Callable[[str], bool]:
    """Which URLs a robots.txt allows: what the file does not mention is allowed."""
    parsed = Protego.parse(text)
    return lambda url: bool(parsed.can_fetch(url, user_agent))
