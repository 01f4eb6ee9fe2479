"""The throttling managers of Scrapy's draft, as it has them: only the import is another."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlparse

import tldextract
from scrapy.utils.httpobj import urlparse_cached
from w3lib.url import url_query_parameter

from autothrottle.scrapy import (
    Backoffs,
    ScopeAnswer,
    Scopes,
    ThrottlingManager,
    ThrottlingScopeManager,
    add_scope,
    scope_cache,
    update_scope_backoff,
)

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

# The list of suffixes that comes with the package: a crawl need not fetch one first.
extract = tldextract.TLDExtract(suffix_list_urls=())


class RegistrableDomain:
    """The highest-level registrable domain: all of its subdomains are one scope."""

    def get_request_scopes(self, request: Request) -> Scopes:
        extracted = extract(request.url)
        if extracted.domain and extracted.suffix:
            return f"{extracted.domain}.{extracted.suffix}"
        return str(urlparse_cached(request).netloc)


class DomainHierarchy:
    """A scope for the registrable domain and one for each name below it."""

    def get_request_scopes(self, request: Request) -> Scopes:
        extracted = extract(request.url)
        if not (extracted.domain and extracted.suffix):
            return str(urlparse_cached(request).netloc)
        scopes = set()
        registrable_domain = f"{extracted.domain}.{extracted.suffix}"
        scopes.add(registrable_domain)
        if extracted.subdomain:
            subdomain_parts = extracted.subdomain.split(".")
            for i in range(len(subdomain_parts)):
                subdomain = ".".join(subdomain_parts[i:])
                scopes.add(f"{subdomain}.{registrable_domain}")
        return scopes


class Endpoints(ThrottlingManager):
    """Each endpoint of one host is a scope of its own."""

    @scope_cache
    async def get_scopes(self, request: Request) -> Scopes:
        parsed_url = urlparse_cached(request)
        if parsed_url.netloc != "api.toscrape.com":
            return await super().get_scopes(request)
        return f"{parsed_url.netloc}{parsed_url.path}"


class ScrapingApi(ThrottlingManager):
    """The API, and the site that it is asked to fetch."""

    @scope_cache
    async def get_scopes(self, request: Request) -> Scopes:
        scopes = await super().get_scopes(request)
        if urlparse_cached(request).netloc != "api.toscrape.com":
            return scopes
        target_url = url_query_parameter(request.url, "url")
        if not target_url:
            return scopes
        target_domain = urlparse(target_url).netloc
        return add_scope(scopes, target_domain)

    async def get_response_backoff(self, response: Response) -> Backoffs:
        assert response.request is not None
        if urlparse_cached(response.request).netloc != "api.toscrape.com" or response.status != 200:
            return await super().get_response_backoff(response)
        upstream_status_code = int(response.headers.get("X-Upstream-Status-Code", b"200") or b"200")
        upstream_response = response.__class__(
            response.url,
            status=upstream_status_code,
            headers=response.headers,
            body=response.body,
        )
        return await super().get_response_backoff(upstream_response)


class PatientApi(ScrapingApi):
    """Better than the draft's: a target that refuses slows the target down, an API that refuses the API."""

    async def get_response_backoff(self, response: Response) -> Backoffs:
        assert response.request is not None
        backoffs = await super().get_response_backoff(response)
        api = urlparse_cached(response.request).netloc
        if api != "api.toscrape.com" or not isinstance(backoffs, dict):
            return backoffs
        is_of_api = response.status != 200
        return {scope: means for scope, means in backoffs.items() if (scope == api) == is_of_api}


def estimate_request_cost(request: Request) -> float:
    """The probable cost of a request: the API of this example takes five times as much for a browser."""
    return 5.0 if url_query_parameter(request.url, "render") else 1.0


class CostCapped(ThrottlingManager):
    """The quota bounds the sum of the costs that the API reports, in each window."""

    @scope_cache
    async def get_scopes(self, request: Request) -> Scopes:
        scopes = await super().get_scopes(request)
        parsed_url = urlparse_cached(request)
        if parsed_url.netloc != "api.toscrape.com":
            return scopes
        return add_scope(scopes, "cost", estimate_request_cost(request))

    async def get_response_backoff(self, response: Response) -> Backoffs:
        scopes = await super().get_response_backoff(response)
        if scopes is None or "cost" not in scopes:
            return scopes
        actual_cost = float(response.headers.get("X-Actual-Cost", b"0") or b"0")
        return update_scope_backoff(scopes, "cost", consumed_quota=actual_cost)


class Patient(ThrottlingScopeManager):
    """A THROTTLING_SCOPE_MANAGER: half a minute after a bad answer, and no delay between good ones."""

    delay = 0.0

    def on_bad(self, answer: ScopeAnswer) -> None:
        self.delay = 30.0

    def on_good(self, answer: ScopeAnswer) -> None:
        self.delay = 0.0
