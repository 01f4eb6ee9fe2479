"""Writes ``docs/python-api.md``: every public member of the package, as the sources have it.

``python python/scripts/api.py`` writes the page anew; ``tests/test_tidy.py`` says when it is old. The sources
are parsed and never imported, so neither the native module nor a client is needed.

``public_names`` lists what the page must have.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SOURCE = HERE / "src" / "autothrottle"
PAGE = HERE.parent / "docs" / "python-api.md"

HEAD = """# Python API

Every public member of the Python package, written from its docstrings. Options are those of
[settings](settings.md) in `snake_case`. Times are seconds: a number or a `timedelta`.
[Python](../python/README.md) has examples, [errors](errors.md) says what to do about each code. Your editor
shows the full docstrings.
"""

SECTIONS: list[tuple[str, str, list[str]]] = [
    ("A throttle: `Throttle` for asyncio", "throttle.", ["_throttle.py Throttle", "_base.py BaseThrottle"]),
    (
        "`ThreadThrottle` for threads: the same members, and these block",
        "throttle.",
        ["_threads.py ThreadThrottle"],
    ),
    ("A permit: `acquire`, and the parameter `permit` of a function", "permit.", ["_permit.py Permit"]),
    ("One scope: `throttle.scope(name)`", "scope.", ["_base.py ScopeControl"]),
    ("Options of one request", "", ["_requests.py request_options RequestOptions"]),
    ("`throttle.peek(url)`", "", ["_seconds.py Peek"]),
    ("`throttle.stats()`", "", ["_stats.py Stats"]),
    ("Statistics of a scope", "", ["_stats.py ScopeStats"]),
    ("Of one budget: `stats.budgets[name]`", "", ["_stats.py BudgetStats"]),
    ("Statistics of a shared limit", "", ["_stats.py SharedStats"]),
    ("Events", "event.", []),
    ("Rules for scopes", "", ["_scopes.py by_host by_endpoint by_domain_hierarchy add_scope"]),
    ("Hooks", "", ["_hooks.py ScopeRequest Backoffs update_scope_backoff"]),
    ("What a hook says of one scope", "", ["_hooks.py ScopeBackoff"]),
    ("What `get_hints` gives", "", ["_hooks.py SomeHints"]),
    ("A manager of yours", "manager.", ["_managers.py ScopeManager"]),
    ("What its methods get", "event.", ["_managers.py ManagedSend ManagedAnswer"]),
    (
        "Clients",
        "",
        [
            "httpx.py AsyncThrottleTransport ThrottleTransport",
            "aiohttp.py ThrottleMiddleware",
            "requests.py ThrottleAdapter",
            "crawlee.py ThrottledHttpClient",
        ],
    ),
    ("Language models: `autothrottle.llm`", "", ["llm/__init__.py transport async_transport middleware"]),
    ("Options of these", "", ["llm/__init__.py LlmOptions", "llm/_request.py Vendor"]),
    ("A limit of a language model", "", ["llm/_budgets.py LlmLimit"]),
    ("Statistics of language models", "", ["llm/_core.py LlmStats"]),
    ("robots.txt: `autothrottle.robots`", "", ["robots.py rules"]),
    (
        "Limits of public APIs: `autothrottle.presets`",
        "",
        [
            "presets.py presets preset preset_hosts body_hints async_body_hints",
            "presets.py Preset PresetSource",
        ],
    ),
    ("OpenTelemetry: `autothrottle.opentelemetry`", "", ["opentelemetry.py instrument"]),
    (
        "Language models: `autothrottle.llm`",
        "",
        [
            "llm/__init__.py transport async_transport middleware LlmOptions",
            "llm/_budgets.py LlmLimit",
            "llm/_core.py LlmStats",
        ],
    ),
    (
        "Several processes: `autothrottle.redis`",
        "",
        ["redis.py shared Shared", "_shared/transport.py Offline"],
    ),
    ("Tests: `autothrottle.testing`", "clock.", ["testing.py FakeClock", "_clock.py Clock"]),
    (
        "Scrapy: `autothrottle.scrapy`",
        "manager.",
        [
            "scrapy/_downloader.py Downloader",
            "scrapy/_managers.py ThrottlingManager ThrottlingManagerProtocol Scopes Backoffs",
            "scrapy/_managers.py add_scope update_scope_backoff scope_cache",
            "scrapy/_managers.py ThrottlingScopeManager ThrottlingScopeManagerProtocol",
        ],
    ),
    ("What a scope manager of Scrapy gets", "answer.", ["scrapy/_managers.py ScopeAnswer"]),
    ("The engine alone: `autothrottle.engine`", "engine.", ["_native.pyi Engine parse_hints parse_robots"]),
]
"""A heading, how one gets at the members, and files with the names in them; those of events are written."""

HIDDEN = {
    # The way between a permit and its scheduler, across files of the package.
    "Permit": {"end", "report", "give", "take", "started", "end_block"},
    # Methods that Scrapy calls.
    "Downloader": {"fetch", "needs_backout", "get_slot_key", "close", "is_bad_status", "is_bad_exception"},
    # A protocol has the methods of the class that stands above it.
    "ThrottlingManagerProtocol": {
        "get_scopes",
        "get_response_backoff",
        "get_exception_backoff",
        "get_response_delay",
    },
    "ThrottlingScopeManagerProtocol": {"on_send", "on_good", "on_bad"},
    "Shared": {"open_host"},
    "ThrottlingScopeManager": {"from_crawler"},
}

# Every module and package that has no underscore; `options` has the types of the settings.
PUBLIC = sorted(
    {"__init__", *(path.stem for path in SOURCE.glob("[!_]*.py"))}
    | {f"{path.parent.name}/__init__" for path in SOURCE.glob("[!_]*/__init__.py")}
)


@cache
def parsed(name: str) -> ast.Module:
    """A file of the package."""
    return ast.parse((SOURCE / name).read_text(encoding="utf-8"))


def public_names(modules: Sequence[str] = PUBLIC) -> set[str]:
    """The exports of the public modules, or of some."""
    found: set[str] = set()
    for name in modules:
        for node in parsed(f"{name}.py").body:
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if ast.unparse(target) == "__all__":
                    found.update(ast.literal_eval(node.value))
    return found


def plain(text: str) -> str:
    """A part of a docstring as Markdown, in one line."""
    marked = re.sub(r":\w+:`(\w+)`", r"`\1`", text.replace("``", "`"))
    return re.sub(r"\s+", " ", marked).strip().replace("|", "\\|")


def first(text: str | None) -> str:
    """The first paragraph of a docstring."""
    return plain(re.split(r"\n\s*\n|\n\s*:\w+|\n\s*\.\. ", (text or "").strip())[0]).rstrip(":")


def whole(text: str | None) -> str:
    """The first paragraph, each argument, and what is raised."""
    lines = [first(text)]
    for mark, body in re.findall(r"^(\* |:)(.+(?:\n[ ]{2,}.+)*)", text or "", re.MULTILINE):
        name, _, about = body.partition(":")
        name = f"`{name.split()[-1]}`" if mark == ":" else name
        lines.append(
            plain(f"{name}: {about}") if mark == "* " or "param" in body else plain(f"Raises {name}: {about}")
        )
    raised = re.search(r"^Raises .+(?:\n.+)*", text or "", re.MULTILINE)
    return "<br>".join(lines + ([plain(raised[0])] if raised else []))


def row(signature: str, text: str) -> str:
    """A line of a table."""
    shown = re.sub(r"\s+", " ", signature).replace("|", "\\|")
    return f"| `{shown}` | {text} |\n"


def text_after(body: list[ast.stmt], index: int) -> str | None:
    """The string that documents an assignment stands right after it."""
    if index + 1 == len(body):
        return None
    node = body[index + 1]
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    value = node.value.value if is_text else None  # type: ignore[attr-defined]
    return value if isinstance(value, str) else None


def spaced(arguments: ast.arguments) -> str:
    """Arguments as one writes them: ``ast.unparse`` leaves no room around a default beside a type."""
    text = ast.unparse(arguments).replace("Unpack[", "").replace("Options]", "Options")
    return re.sub(r"(: [^=]+?)=", r"\1 = ", text)


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, is_method: bool) -> str:
    """How it is called, without the decorators and without ``self``."""
    decorators = {ast.unparse(each) for each in node.decorator_list}
    if "property" in decorators:
        return f"{node.name}: {ast.unparse(node.returns)}" if node.returns else node.name
    arguments = spaced(node.args)
    if is_method and "staticmethod" not in decorators:
        arguments = re.sub(r"^(?:self|cls)(?:, /)?(?:, )?", "", arguments)
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    prefix = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{prefix}{{}}{node.name}({arguments}){gives}"


def is_shown(node: ast.stmt, hidden: set[str]) -> bool:
    """Whether a member is public."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith("_"):
        return False
    is_overload = any(ast.unparse(each) == "overload" for each in node.decorator_list)
    return node.name not in hidden | {"of"} and not is_overload and ast.get_docstring(node) is not None


def attributes(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Documented attributes of a class, also those that its ``__init__`` assigns."""
    for index, node in enumerate(body):
        text = text_after(body, index)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if text is not None and not node.target.id.startswith("_"):
                yield f"{node.target.id}: {ast.unparse(node.annotation)}", text
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and text is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Attribute) and not target.attr.startswith("_"):
                is_listener = target.attr in ("on", "off")
                yield f"{target.attr}(kind, listener)" if is_listener else target.attr, text
        elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
            yield from attributes(node.body)


def made(node: ast.ClassDef) -> str | None:
    """How one makes it; ``None`` for what only the package makes."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return signature(each, True).format("").replace("__init__", node.name).removesuffix(" -> None")
    return None


MADE_BY_YOU = {"Throttle", "ThreadThrottle", "FakeClock", "Engine", "ThrottleMiddleware", "ThrottleAdapter"}
MADE_BY_YOU |= {"AsyncThrottleTransport", "ThrottleTransport"}


def rows_of_class(node: ast.ClassDef, prefix: str) -> str:
    """The class and its members."""
    page = ""
    if node.name != "BaseThrottle":
        called = made(node) if node.name in MADE_BY_YOU else None
        text = first(ast.get_docstring(node))
        page += row(called or node.name, text)
    for name, text in attributes(node.body):
        page += row(f"{prefix}{name}", first(text))
    for each in node.body:
        if is_shown(each, HIDDEN.get(node.name, set())):
            assert isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            called = signature(each, True)
            shown = called.format(prefix) if "{}" in called else f"{prefix}{called}"
            page += row(shown.removesuffix(" -> None"), whole(ast.get_docstring(each)))
    return page


def rows(file: str, name: str, prefix: str) -> str:
    """The lines of one name."""
    body = parsed(file).body
    for index, node in enumerate(body):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return rows_of_class(node, prefix)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return row(signature(node, False).format(""), whole(ast.get_docstring(node)))
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            assert node.value is not None
            alias = ast.unparse(node.value).strip("'")
            return row(f"{name} = {alias}", first(text_after(body, index)))
    raise LookupError(f"{file}: there is no {name}")


def errors() -> str:
    """The table of errors: class, code, meaning, attributes."""
    page = "\n## Errors\n\nAll are `ThrottleError`s. `Problem` is what `error.problems` lists.\n\n"
    page += "| class | code | what happened | attributes |\n|---|---|---|---|\n"
    for node in parsed("errors.py").body:
        if not isinstance(node, ast.ClassDef) or node.name == "ProblemsError":
            continue
        codes = [
            ast.literal_eval(each.value)
            for each in node.body
            if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None
            if ast.unparse(each.targets[0] if isinstance(each, ast.Assign) else each.target) == "code"
        ]
        bases = [ast.unparse(each) for each in node.bases]
        is_problems = "ProblemsError" in bases
        also = [
            base
            for base in bases
            if base not in ("ThrottleError", "ProblemsError", "NamedTuple", "Exception")
        ]
        name = f"`{node.name}`" + (f" (also a `{also[0]}`)" if also else "")
        name += " (also a `ValueError`)" if is_problems else ""
        names = [each.split(":")[0] for each, _ in attributes(node.body) if not each.startswith("code")]
        names = ["problems", "path"] if is_problems else names
        shown = ", ".join(f"`{each}`" for each in names)
        code = f"`{codes[0]}`" if codes else ""
        page += f"| {name} | {code} | {first(ast.get_docstring(node))} | {shown} |\n"
    return page


def data() -> str:
    """The engine's results: classes and their fields."""
    page = "\n## What the engine gives\n\n| class | what it is | fields |\n|---|---|---|\n"
    exported = [
        each for node in parsed("engine.py").body if isinstance(node, ast.ImportFrom) for each in node.names
    ]
    wanted = {each.name for each in exported}
    for node in parsed("_state.py").body:
        if isinstance(node, ast.ClassDef) and node.name in wanted:
            names = [ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)]
            fields = ", ".join(f"`{name}`" for name in names)
            page += f"| `{node.name}` | {first(ast.get_docstring(node))} | {fields} |\n"
    return page


def events(prefix: str) -> Iterator[tuple[str, str, list[str]]]:
    """A section for each class of events, in the order of the union of all."""
    body = parsed("_events.py").body
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    aliases = {
        ast.unparse(node.target): node.value
        for node in body
        if isinstance(node, ast.AnnAssign) and node.value is not None
    }
    for name in ast.unparse(aliases["Event"]).split(" | "):
        kinds = re.findall(r"'(\w+)'", ast.unparse(aliases[f"{name.removesuffix('Event')}Kind"]))
        title = f"Event{'s' if len(kinds) > 1 else ''} " + ", ".join(f"`{kind}`" for kind in kinds)
        also = ": these as well" if classes[name].bases else ""
        yield title + also, prefix, [f"_events.py {name}"]


def sections() -> Iterator[tuple[str, str, list[str]]]:
    """Those of the list, with those of events in their place."""
    for section in SECTIONS:
        if section[0] == "Events":
            yield from events(section[1])
        else:
            yield section


def api() -> str:
    """The page."""
    page = HEAD
    for title, prefix, parts in sections():
        page += f"\n## {title}\n\n| member | what it does |\n|---|---|\n"
        for part in parts:
            file, *names = part.split()
            page += "".join(rows(file, name, prefix) for name in names)
    return page + data() + errors()


if __name__ == "__main__":
    PAGE.write_text(api(), encoding="utf-8")
