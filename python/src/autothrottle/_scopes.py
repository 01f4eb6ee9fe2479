"""Which scopes a request belongs to: by default one, the host of its URL.

One host has several names: ``HTTP://Example.COM:80/`` and ``http://example.com`` are one
scope, and so are the two spellings of an international name. The names are those of the npm package, so
that one snapshot serves both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from ._native import authority_of, host_name

Scopes: TypeAlias = str | Sequence[str] | Mapping[str, float]
"""One scope, several, or a mapping of scope to expected cost."""

_PLAIN = re.compile(r"https?://((?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*)(?:[/?#]|\Z)")
_IN_NAME = re.compile(r"://(?:[^/?#]*@)?([^/?#]*)")
_PATTERN = re.compile(r"(?=.*\*)[\w.*-]+")
_HOST = re.compile(r"[\w\x80-\U0010ffff-]+(?:\.[\w\x80-\U0010ffff-]+)+(?::[0-9]+)?")
_LETTER = re.compile(r"[a-zA-Z\x80-\U0010ffff]")
_IPV6 = re.compile(r"[\da-f]*(?::[\da-f]*){2,7}", re.IGNORECASE)


def host_of(url: object) -> str:
    """The scope of a URL: its host, with its port where that is not the scheme's own.

    Takes a text, or the URL objects of httpx and yarl (aiohttp). Raises ``ValueError`` for what is no URL.
    """
    text = url if isinstance(url, str) else str(url)
    plain = _PLAIN.match(text)
    if plain is not None:
        return plain[1]
    asked = authority_of(text)
    if asked is None:
        raise ValueError(f"want a URL with a host, or scopes=…; got {text!r}")
    host, port = asked
    try:
        name = host_name(host if host.isascii() else _ascii(host))
    except ValueError as error:
        raise ValueError(f"want a URL; got {text!r}: {error}") from None
    if name is None:
        raise ValueError(f"want a URL with a host, or scopes=…; got {text!r}")
    return name if port is None else f"{name}:{port}"


def _ascii(host: str) -> str:
    """An international name as it is sent. The clients bring the newer rules along (``idna``)."""
    try:
        import idna
    except ImportError:
        return host.encode("idna").decode("ascii")
    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return host.encode("idna").decode("ascii")


def named_scopes(scopes: Scopes) -> tuple[tuple[str, ...], list[float] | None]:
    """Scopes in any of their forms as names and costs; no costs where none were given."""
    if isinstance(scopes, str):
        return (scopes,), None
    if isinstance(scopes, Mapping):
        names, costs = tuple(scopes), list(scopes.values())
    elif isinstance(scopes, Iterable):
        names, costs = tuple(scopes), None
    else:
        raise TypeError(f"scopes: want names as text; got {scopes!r}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"scopes: want names as text; got {name!r}")
    if not names:
        raise ValueError("scopes: want at least one name; got none")
    return names, costs


def checked_name(name: object) -> str:
    """The name of a scope. One that is a URL is refused: no request would ever wait for it."""
    if not isinstance(name, str):
        raise TypeError(f"scope: want a name; got {name!r}")
    host = _IN_NAME.search(name)
    if host is not None:
        raise ValueError(f'scope: want the host alone, "{host[1]}"; got "{name}"')
    return name


def host_of_name(name: object) -> str | None:
    """The scope that a URL with this host has, where that is another: ``API.example``, ``bücher.example``,
    ``::1``.
    """
    if not isinstance(name, str):
        return None
    text = name.strip().removesuffix("/")
    is_address = _IPV6.fullmatch(text) is not None
    if not is_address and (_HOST.fullmatch(text) is None or _LETTER.search(text) is None):
        return None
    try:
        hosts = [
            host_of(f"{scheme}://{f'[{text}]' if is_address else text}/") for scheme in ("https", "http")
        ]
    except ValueError:  # nor is it a host
        return None
    return None if name in hosts else hosts[0]


def unmet(typed: Iterable[str], met: Iterable[str]) -> list[tuple[str, str]]:
    """Names that no request met, each beside the host that it may be meant for.

    Most names that were not met are as they should be: of presets for ten hosts two are used.
    """
    names, met = list(typed), list(met)
    others = [host for host in met if host not in names]
    pairs = ((name, host) for name in names if name not in met for host in others if _is_alike(name, host))
    return list(dict(reversed(list(pairs))).items())


def _is_alike(typed: str, sent: str) -> bool:
    """Whether one host may be typed for the other: below it, at a port, or a typo away."""
    one, other = ("." + re.sub(r":\d+\Z", "", name) for name in (typed, sent))
    if one.endswith(other) or other.endswith(one):
        return True
    # `a.example` and `b.example` are two, and so are `eu1` and `eu2`.
    a, b = (re.sub(r"\d|\b.\b", "", name) for name in (one, other))
    if a == b or abs(len(a) - len(b)) > 1:
        return False
    return not {b, *_without_one(b)}.isdisjoint((a, *_without_one(a)))


def _without_one(name: str) -> list[str]:
    return [name[:at] + name[at + 1 :] for at in range(len(name))]


def problem_of_name(name: object) -> str | None:
    """The warning for a name that no URL has for its scope; ``None`` where one may."""
    if isinstance(name, str) and _PATTERN.fullmatch(name):
        every = "defaults are for all hosts, get_scopes=by_domain_hierarchy() is for those of one domain"
        return f"has no effect: names of scopes are no patterns; {every}"
    host = host_of_name(name)
    return None if host is None else f'has no effect: it is the scope of no URL; type "{host}"'


def by_host(request: Any) -> str:
    """The host of the URL: what a throttle does without ``get_scopes``."""
    return host_of(request.url)


def by_endpoint(*hosts: str) -> Callable[[Any], str]:
    """Host and path for these hosts (for all, without any), so that each endpoint is a scope of its own."""
    called_by_throttle = [each for each in hosts if not isinstance(each, str)]
    if called_by_throttle:
        want = "by_endpoint: want names of hosts"
        raise TypeError(
            f"{want}; got {called_by_throttle[0]!r:.60}: type by_endpoint(), which makes a function"
        )
    typed = {host_of(host) if "://" in host else host_of_name(host) or host for host in hosts}

    def scopes(request: Any) -> str:
        host = host_of(request.url)
        return host + (urlsplit(str(request.url)).path or "/") if not typed or host in typed else host

    return scopes


def by_domain_hierarchy(
    registrable_domain: Callable[[str], str | None] | None = None,
) -> Callable[[Any], list[str]]:
    """One scope for the registrable domain and one for each host name below it.

    ``a.books.example.com`` belongs to itself, to ``books.example.com`` and to ``example.com``. Without
    ``registrable_domain`` (of a library that has the public suffix list, as ``tldextract`` or
    ``publicsuffix2``) it is a rule of thumb: the last two labels, or three where the last but one is short
    (``example.co.uk``).
    """
    registrable_of = registrable_domain or _last_labels

    def scopes(request: Any) -> list[str]:
        host = host_of(request.url)
        hostname = re.sub(r":\d+\Z", "", host)
        is_address = hostname.startswith("[") or re.fullmatch(r"\d+(?:\.\d+){3}", hostname) is not None
        registrable = None if is_address else registrable_of(hostname)
        if not registrable or not f".{hostname}".endswith(f".{registrable}"):
            return [host]
        above = [label for label in hostname[: -len(registrable)].split(".") if label]
        return [".".join([*above[index:], registrable]) for index in range(len(above))] + [registrable]

    return scopes


def _last_labels(hostname: str) -> str | None:
    labels = hostname.split(".")
    if len(labels) < 2:
        return None
    is_short = len(labels[-1]) == 2 and len(labels[-2]) <= 3 and len(labels) > 2
    return ".".join(labels[-3 if is_short else -2 :])


def add_scope(scopes: Scopes, name: str, cost: float | None = None) -> Scopes:
    """These scopes and one more. With a cost, or where there are costs already, a mapping."""
    if isinstance(scopes, Mapping):
        return {**scopes, name: 1 if cost is None else cost}
    names = [scopes] if isinstance(scopes, str) else list(scopes)
    if cost is not None:
        return {**dict.fromkeys(names, 1.0), name: cost}
    return names if name in names else [*names, name]
