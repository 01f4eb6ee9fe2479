"""Presets are the data of the npm package in Python's words, and options of a throttle."""

from __future__ import annotations

import asyncio
import json
import re

import httpx
import pytest

from autothrottle import Throttle
from autothrottle.httpx import AsyncThrottleTransport
from autothrottle.presets import async_body_hints, body_hints, preset, preset_hosts, presets
from autothrottle.testing import FakeClock


def test_each_is_an_option_with_its_source() -> None:
    assert len(preset_hosts) >= 15
    throttle = Throttle(scopes=presets(*preset_hosts), clock=FakeClock())
    assert throttle.stats().waiting == 0
    for host in preset_hosts:
        for source in preset(host).sources:
            assert len(source.sentence) > 20
            assert source.url.startswith("https://")
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", source.read)


def test_times_are_seconds() -> None:
    assert presets("export.arxiv.org")["export.arxiv.org"]["rate"] == {"limit": 0.95, "window": 3}
    assert preset("api.airtable.com").options["backoff"] == {"min_delay": 30}


def test_yours_come_on_top_and_change_none() -> None:
    mine = presets("api.stripe.com")
    mine["api.stripe.com"]["rate"] = 100
    assert preset("api.stripe.com").options["rate"] != 100


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(ValueError, match=r"no preset for 'api\.example'; there are api\.airtable\.com"):
        presets("api.example")


STACK = "https://api.stackexchange.com/2.3/questions"
SHOP = "https://a-shop.myshopify.com/admin/api/graphql.json"


def cost(requested: float, left: float) -> bytes:
    status = {"currentlyAvailable": left, "restoreRate": 50}
    return json.dumps(
        {"extensions": {"cost": {"requestedQueryCost": requested, "throttleStatus": status}}}
    ).encode()


@pytest.mark.parametrize(
    ("url", "body", "hints"),
    [
        (STACK, b'{"items":[],"backoff":10}', {"delay": 10}),
        (STACK, b'{"items":[]}', None),
        (STACK, b'{"backoff":"soon"}', None),
        (STACK, b"null", None),
        (STACK, b"<html>", None),
        (SHOP, cost(70, 66), {"delay": 0.08}),
        (SHOP, cost(70, 900), None),
        (SHOP, b'{"errors":[]}', None),
        ("https://api.example/", b'{"backoff":10}', None),
    ],
)
def test_hints_in_bodies(url: str, body: bytes, hints: object) -> None:
    headers = {"content-type": "application/json"}
    response = httpx.Response(200, content=body, headers=headers, request=httpx.Request("GET", url))
    assert body_hints(response) == hints
    assert asyncio.run(async_body_hints(response)) == hints


async def test_a_backoff_in_a_body_holds_its_host() -> None:
    clock = FakeClock()
    throttle = Throttle(clock=clock, get_hints=async_body_hints, scopes=presets("api.stackexchange.com"))

    async def serve(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"items": [1], "backoff": 10}, request=request)

    transport = AsyncThrottleTransport(throttle, httpx.MockTransport(serve))
    async with httpx.AsyncClient(transport=transport) as client:
        assert (await client.get(STACK)).json()["items"] == [1]
        async with client.stream("GET", SHOP) as response:
            assert b"items" in b"".join([part async for part in response.aiter_bytes()])
    assert throttle.peek(STACK).at == 10


def test_a_long_body_is_left_alone() -> None:
    headers = {"content-type": "application/json", "content-length": "300000"}
    response = httpx.Response(
        200, content=b'{"backoff":10}', headers=headers, request=httpx.Request("GET", STACK)
    )
    assert body_hints(response) is None
