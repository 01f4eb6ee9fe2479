"""Scrapy's own tests with this downloader: ``python python/scripts/scrapy_suite.py [FILE …]``.

Fetches the source distribution of the Scrapy that the committed versions name, and runs its tests of
downloads, crawls, queues and middlewares: as they are, then with ``autothrottle.scrapy.Downloader`` at
Scrapy's own pace. It prints each case that ends otherwise. The exit code says whether one does and does not
pass.

Tests that need the internet fail in both: only differences count. Nightly: it takes ten minutes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path

from check import HERE, NEWEST, environment_of, native, step

FILES = (
    *("closespider", "core_downloader", "core_scraper", "crawl", "crawler", "crawler_runners"),
    *("downloader_handler_aiohttp", "downloader_handler_httpx", "downloader_handler_twisted_http11"),
    *("downloader_handlers", "downloadermiddleware", "downloadermiddleware_cookies"),
    *("downloadermiddleware_downloadtimeout", "downloadermiddleware_httpcache"),
    *("downloadermiddleware_httpproxy", "downloadermiddleware_offsite", "downloadermiddleware_redirect"),
    *("downloadermiddleware_retry", "downloadermiddleware_robotstxt", "downloadermiddleware_stats"),
    *("downloaderslotssettings", "engine", "engine_close_spider", "engine_download", "engine_loop"),
    *("engine_stop_download_bytes", "engine_stop_download_headers", "extension_throttle", "logstats"),
    *("pipeline_crawl", "pipelines", "pqueues", "request_attribute_binding", "request_cb_kwargs"),
    *("request_left", "scheduler", "signals", "spider_crawl", "spider_start", "spidermiddleware"),
)
"""Its test files, without ``test_`` and ``.py``."""

PLUGIN = '''
"""Scrapy's default settings with another downloader, at Scrapy's own pace."""
import os
from scrapy.settings import Settings, default_settings

if os.environ.get("AUTOTHROTTLE_SUITE"):
    default_settings.DOWNLOADER = "autothrottle.scrapy.Downloader"
    plain = Settings.__init__

    def typed(self, *arguments, **keywords):
        # A default of Scrapy's would count as not typed.
        plain(self, *arguments, **keywords)
        pace = {"DOWNLOAD_DELAY": 0, "DOWNLOAD_DELAY_PER_SLOT": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}
        self.setdict(pace, priority="addon")

    Settings.__init__ = typed
'''

PACKAGES = (
    *("scrapy", "httpx", "aiohttp", "typing_extensions", "pytest", "pytest-twisted", "pytest-timeout"),
    *("pytest-rerunfailures", "testfixtures", "pexpect", "pyftpdlib", "sybil", "pillow", "psutil", "uvloop"),
)


def source_of(version: str, python: Path) -> Path:
    """Scrapy's source distribution, unpacked."""
    folder = HERE / ".scrapy-suite"
    unpacked = folder / f"scrapy-{version}"
    if not unpacked.exists():
        pip = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "scrapy"]
        step("fetch Scrapy's source", *pip, "--dest", folder, f"scrapy=={version}")
        with tarfile.open(folder / f"scrapy-{version}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    (unpacked / "autothrottle_suite.py").write_text(PLUGIN)
    return unpacked


def outcomes(python: Path, source: Path, files: list[str], ours: bool) -> dict[str, str]:
    """How each case ends."""
    report = source / f"report-{'ours' if ours else 'theirs'}.xml"
    report.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source}{os.pathsep}{HERE / 'src'}",
        "AUTOTHROTTLE_SUITE": "1" if ours else "",
    }
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "autothrottle_suite",
        "--timeout=300",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--reactor=asyncio", f"--junitxml={report}", *files]
    # Its own exit code does not count: some of its tests need the internet.
    subprocess.run([str(each) for each in command], cwd=source, env=environment, check=False)
    if not report.exists():
        raise SystemExit("pytest wrote no report")
    found: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        # Ports and addresses of objects differ from run to run.
        name = re.sub(r"0x[0-9a-f]+|:\d{4,5}\b", "…", f"{case.get('classname')}.{case.get('name')}")
        found[name] = kinds[0] if kinds else "passed"
    return found


def main() -> None:
    """Runs both, and tells the differences."""
    native()
    match = re.search(r"^Scrapy==(\S+)$", NEWEST.read_text(), re.MULTILINE)
    assert match is not None
    python = environment_of(".venv-suite", NEWEST, PACKAGES)
    source = source_of(match[1], python)
    files = sys.argv[1:] or [f"tests/test_{name}.py" for name in FILES]
    theirs, ours = (outcomes(python, source, files, each) for each in (False, True))
    different = {name: (theirs.get(name), ours.get(name)) for name in theirs.keys() | ours.keys()}
    different = {name: both for name, both in sorted(different.items()) if both[0] != both[1]}
    for kind, all_ in (("as it is", theirs), ("with autothrottle", ours)):
        ends = {end: list(all_.values()).count(end) for end in ("passed", "failure", "error", "skipped")}
        print(f"{kind:18} {len(all_)} cases: {', '.join(f'{count} {end}' for end, count in ends.items())}")
    for name, (before, after) in different.items():
        print(f"{name}: {before} → {after}")
    if any(after != "passed" for _, after in different.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
