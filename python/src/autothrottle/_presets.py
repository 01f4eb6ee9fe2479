"""Limits that owners of public APIs state: written from ``js/presets.ts`` by
``node docs/presets.mjs``. Change it there.
"""

# ruff: noqa: E501
# fmt: off
from __future__ import annotations

from .options import ScopeOptions

PRESETS: dict[str, tuple[ScopeOptions, tuple[tuple[str, ...], ...], str | None]] = {
    "api.airtable.com": ({"rate": {"limit": 4.75, "window": 1}, "backoff": {"min_delay": 30}}, (
        ("If you exceed this rate, you will receive a 429 status code and must wait 30 seconds before subsequent requests will succeed.", "https://support.airtable.com/docs/en/managing-api-call-limits-in-airtable", "2026-11-22"),
    ), None),
    "api.attio.com": ({"rate": {"limit": 23.75, "window": 1}}, (
        ("Our rate limit across the whole API is 100 requests per second for read requests, 25 requests per second for write requests.", "https://docs.attio.com/rest-api/guides/rate-limiting", "2026-11-22"),
    ), None),
    "api.cc.email": ({"rate": {"limit": 3.8, "window": 1}, "quota": {"limit": 10000, "window": 86400}}, (
        ("You can use your API key to send up to 10,000 requests per day and 4 requests per second.", "https://developer.constantcontact.com/api_guide/rate_limits.html", "2026-11-22"),
    ), None),
    "api.github.com": ({"rate": {"limit": 855, "window": 60, "burst": 5}}, (
        ("No more than 100 concurrent requests are allowed.", "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026-11-22"),
        ("No more than 900 points per minute are allowed for REST API endpoints", "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026-11-22"),
        ("Most REST API POST, PATCH, PUT, or DELETE requests: 5 [points]", "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026-11-22"),
        ("All of these requests count towards your personal rate limit of 5,000 requests per hour.", "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026-11-22"),
        ("The primary rate limit for unauthenticated requests is 60 requests per hour.", "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026-11-22"),
    ), "any: requests without one are refused"),
    "api.notion.com": ({"rate": {"limit": 2.85, "window": 1}}, (
        ("The rate limit for incoming requests per connection is an average of three requests per second.", "https://developers.notion.com/reference/request-limits.md", "2026-11-22"),
    ), None),
    "api.openalex.org": ({"rate": {"limit": 95, "window": 1}, "backoff": {"status_codes": [403, 429, 430, 502, 503, 504, 520, 521, 522, 523, 524, 529]}}, (
        ("All users: max 100 requests per second", "https://docs.openalex.org/how-to-use-the-api/rate-limits-and-authentication", "2026-11-22"),
        ("403 Forbidden: Rate limit exceeded; slow down", "https://developers.openalex.org/api-reference/errors", "2026-11-22"),
    ), None),
    "api.smile.io": ({"rate": {"limit": 9.5, "window": 1}}, (
        ("All API tokens are permitted to make up to 10 requests per second", "https://dev.smile.io/api/rate-limits", "2026-11-22"),
    ), None),
    "api.stackexchange.com": ({"rate": {"limit": 28.5, "window": 1}}, (
        ("If a single IP is making more than 30 requests a second, new requests will be dropped.", "https://api.stackexchange.com/docs/throttle", "2026-11-22"),
        ("If an application receives a response with the backoff field set, it must wait that many seconds before hitting the same method again.", "https://api.stackexchange.com/docs/throttle", "2026-11-22"),
    ), None),
    "api.stripe.com": ({"rate": {"limit": 23.75, "window": 1}}, (
        ("API endpoints have a default limit of 25 requests per second.", "https://docs.stripe.com/rate-limits", "2026-11-22"),
    ), None),
    "commons.wikimedia.org": ({"concurrency": 1, "delay": 0}, (
        ("Making your requests in series rather than in parallel, by waiting for one request to finish before sending a new request, should result in a safe request rate.", "https://www.mediawiki.org/wiki/API:Etiquette", "2026-11-22", "https://www.mediawiki.org/wiki/API:Etiquette/cs"),
        ("The API requires an HTTP User-Agent header for all requests.", "https://www.mediawiki.org/wiki/Wikimedia_APIs/Access_policy", "2026-11-22"),
    ), "name/version (contact) library/version"),
    "crates.io": ({"rate": {"limit": 0.95, "window": 1}, "concurrency": 1}, (
        ("as long as they limit their request rate to 1 request per second or less", "https://crates.io/data-access", "2026-11-22", "https://github.com/rust-lang/crates.io/pull/1535"),
    ), "the name of your application and a contact (URL or mail)"),
    "data.sec.gov": ({"rate": {"limit": 4.75, "window": 1}}, (
        ("Current guidelines limit users to a total of no more than 10 requests per second, regardless of the number of machines used to submit requests.", "https://www.sec.gov/privacy.htm#security", "2026-11-22", "https://proteuscyber.com/privacy-database/news/9417-secgov-request-rate-threshold-exceeded"),
    ), "your company and a mail address"),
    "discord.com": ({"concurrency": 16, "delay": 0}, (
        ("rate limits should not be hard coded into your app", "https://docs.discord.com/developers/topics/rate-limits", "2026-11-22"),
    ), None),
    "en.wikipedia.org": ({"concurrency": 1, "delay": 0}, (
        ("Making your requests in series rather than in parallel, by waiting for one request to finish before sending a new request, should result in a safe request rate.", "https://www.mediawiki.org/wiki/API:Etiquette", "2026-11-22", "https://www.mediawiki.org/wiki/API:Etiquette/cs"),
        ("The API requires an HTTP User-Agent header for all requests.", "https://www.mediawiki.org/wiki/Wikimedia_APIs/Access_policy", "2026-11-22"),
    ), "name/version (contact) library/version"),
    "eutils.ncbi.nlm.nih.gov": ({"rate": {"limit": 2.85, "window": 1}}, (
        ("NCBI E-Utilities API service limits the number of requests per second (rps) to 3.", "https://support.nlm.nih.gov/knowledgebase/article/KA-05317/en-us", "2026-11-22"),
        ("You can increase the rate to 10 rps if you obtain and use an API Key.", "https://support.nlm.nih.gov/knowledgebase/article/KA-05317/en-us", "2026-11-22"),
    ), None),
    "export.arxiv.org": ({"rate": {"limit": 0.95, "window": 3}, "concurrency": 1}, (
        ("no more than one request every 3 seconds - no more than one connection at a time", "https://info.arxiv.org/help/api/tou.html#rate-limits", "2026-11-22", "https://the-obstacle-is-the-way.github.io/erdos-banger/vendor-docs/arxiv"),
    ), None),
    "musicbrainz.org": ({"rate": {"limit": 0.95, "window": 1}}, (
        ("1 request per second (on average) per IP address", "https://musicbrainz.org/doc/MusicBrainz_API/Rate_Limiting", "2026-11-22", "https://github.com/jelte1/SpotiFLAC-Command-Line-Interface/issues/10"),
    ), "the name of your application and a contact (URL or mail)"),
    "nominatim.openstreetmap.org": ({"rate": {"limit": 0.95, "window": 1}, "concurrency": 1}, (
        ("No heavy uses (an absolute maximum of 1 request per second).", "https://operations.osmfoundation.org/policies/nominatim/", "2026-11-22", "https://www.cuch.org/nominatim-usage-policy-aka-geocoding-policy_394535"),
    ), "the name of your application; those of HTTP libraries are refused"),
    "overpass-api.de": ({"concurrency": 2, "delay": 1, "quota": {"limit": 10000, "window": 86400}}, (
        ("users are expected to send a maximum of about 10000 requests per day", "https://dev.overpass-api.de/overpass-doc/en/preface/commons.html", "2026-11-22", "https://wiki.openstreetmap.org/wiki/Error_429"),
    ), None),
    "www.anapioficeandfire.com": ({"quota": {"limit": 20000, "window": 86400, "strict": True}}, (
        ("This limit is set to 20000 requests per day.", "https://github.com/joakimskoog/AnApiOfIceAndFire/wiki/Rate-limiting", "2026-11-22"),
    ), None),
    "www.sec.gov": ({"rate": {"limit": 4.75, "window": 1}}, (
        ("Current guidelines limit users to a total of no more than 10 requests per second, regardless of the number of machines used to submit requests.", "https://www.sec.gov/privacy.htm#security", "2026-11-22", "https://proteuscyber.com/privacy-database/news/9417-secgov-request-rate-threshold-exceeded"),
    ), "your company and a mail address"),
    "www.wikidata.org": ({"concurrency": 1, "delay": 0}, (
        ("Making your requests in series rather than in parallel, by waiting for one request to finish before sending a new request, should result in a safe request rate.", "https://www.mediawiki.org/wiki/API:Etiquette", "2026-11-22", "https://www.mediawiki.org/wiki/API:Etiquette/cs"),
        ("The API requires an HTTP User-Agent header for all requests.", "https://www.mediawiki.org/wiki/Wikimedia_APIs/Access_policy", "2026-11-22"),
    ), "name/version (contact) library/version"),
}
"""By host: the options, in which spans are seconds, their sources, and what is wanted in ``User-Agent``."""
