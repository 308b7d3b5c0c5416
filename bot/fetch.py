"""Fetch: download a picture whose address came from outside, and nothing but a picture.

See ``docs/tools.md``, "Downloads". Whoever writes a message chooses its addresses, so each is
resolved here, judged, and connected to as judged: a name that resolves to something else a
moment later leads nowhere else.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal

import httpx2

from bot.errors import NotFetched

Address = IPv4Address | IPv6Address
Allow = Callable[[Address], bool]
"""Whether an address may be connected to."""
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""From a host's name, or the digits of an address, and a port to where they lead."""

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"]

MAX_BYTES = 10 * 1024 * 1024
MAX_SECONDS = 15.0
"""In all, redirects included."""
MAX_REDIRECTS = 3
MAX_URL_CHARS = 4_000
TRIED_ADDRESSES = 3
"""Of a name with several addresses, so many are tried."""

_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # protocol assignments, with the metadata of one cloud among them
            "192.88.99.0/24",  # the old way from IPv4 to IPv6
            "168.63.129.16/32",  # the metadata of another cloud, which looks public
            "2002::/16",  # these three carry an IPv4 address of anybody's choice
            "2001::/32",
            "64:ff9b::/96",
            "64:ff9b:1::/48",
            "fec0::/10",
        ),
    )
)

_BMP_HEADER_SIZES = frozenset({12, 40, 52, 56, 64, 108, 124})


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it came; nothing here decodes it."""

    media_type: MediaType
    data: bytes = field(repr=False)


def is_public(address: Address) -> bool:
    """Whether an address belongs to the internet at large, and not to this machine or network."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address.scope_id is not None:
            return False
    if any(address in network for network in _NOT_PUBLIC if network.version == address.version):
        return False
    return address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or address.is_loopback
        or address.is_link_local
    )


def sniffed(data: bytes) -> MediaType | None:
    """Return what kind of picture ``data`` begins like, whatever its sender calls it."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/bmp" if _begins_like_bmp(data) else None


def _begins_like_bmp(data: bytes) -> bool:
    """Two letters are no proof: many texts begin with them."""
    header_size = int.from_bytes(data[14:18], "little")
    return data.startswith(b"BM") and data[6:10] == bytes(4) and header_size in _BMP_HEADER_SIZES


async def resolved(host: str, port: int) -> Sequence[Address]:
    """Return where a host's name leads now.

    A name whose server is silent keeps a thread for long, whoever stops waiting. So it has one of
    its own: the shared ones, few on a small machine, look up the models' names as well.

    Raises:
        OSError, ValueError: nowhere.
    """
    look_up = partial(
        socket.getaddrinfo, host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
    )
    thread = ThreadPoolExecutor(1, "resolve")
    try:
        found = await asyncio.get_running_loop().run_in_executor(thread, look_up)
    finally:
        thread.shutdown(wait=False)
    return list(dict.fromkeys(ip_address(sockaddr[0]) for *_, sockaddr in found))


async def fetch_picture(
    url: str,
    *,
    allow: Allow = is_public,
    resolve: Resolve = resolved,
    seconds: float = MAX_SECONDS,
    max_bytes: int = MAX_BYTES,
    tls: ssl.SSLContext | None = None,
) -> Picture:
    """Download the picture at ``url``.

    Args:
        url: as somebody gave it.
        allow: which addresses may be connected to.
        resolve: finds them.
        seconds: how long all of it may take.
        max_bytes: how long the picture may be.
        tls: whom to trust; the usual authorities by default.

    Raises:
        NotFetched: there is none, or it may not be fetched.
    """
    try:
        async with asyncio.timeout(seconds):
            context = tls or await asyncio.to_thread(httpx2.create_ssl_context)
            journey = _Journey(allow, resolve, max_bytes, context)
            data = await journey.follow(_read_url(url))
    except TimeoutError:
        raise NotFetched("it did not come in time") from None
    media_type = sniffed(data)
    if media_type is None:
        raise NotFetched("it is no picture", may_be_stale=True)
    return Picture(media_type, data)


@dataclass(frozen=True, slots=True)
class _Journey:
    """One download: from address to address, each judged anew."""

    allow: Allow
    resolve: Resolve
    max_bytes: int
    tls: ssl.SSLContext

    async def follow(self, url: httpx2.URL) -> bytes:
        for _ in range(MAX_REDIRECTS + 1):
            arrived = await self._visit(url)
            if isinstance(arrived, bytes):
                return arrived
            url = arrived
        raise NotFetched("it is redirected too often")

    async def _visit(self, url: httpx2.URL) -> bytes | httpx2.URL:
        """Return what lies at ``url``, or where it redirects to."""
        for address in await self._judged(url):
            try:
                return await self._ask(url, address)
            except httpx2.ConnectError:
                continue
            # The client reads redirects as well: a name that is none is an error of another kind.
            except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
                raise NotFetched(f"the connection failed: {type(error).__name__}") from None
        raise NotFetched("its address cannot be reached")

    async def _judged(self, url: httpx2.URL) -> Sequence[Address]:
        """Return the addresses of a host; one that is not allowed condemns it."""
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            addresses = await self.resolve(url.raw_host.decode("ascii"), port)
        except (OSError, ValueError):
            raise NotFetched("its address cannot be found") from None
        if not all(map(self.allow, addresses)):
            raise NotFetched("its address is not public")
        return addresses[:TRIED_ADDRESSES]

    async def _ask(self, url: httpx2.URL, address: Address) -> bytes | httpx2.URL:
        # A client for each address: connections are shared by address, and a certificate was
        # shown for one name only. No proxy and no .netrc: those are for the operator's own calls.
        transport = httpx2.AsyncHTTPTransport(verify=self.tls, trust_env=False)
        async with httpx2.AsyncClient(
            transport=transport, trust_env=False, timeout=None, follow_redirects=False
        ) as client:
            request = client.build_request(
                "GET",
                url.copy_with(host=str(address)),
                headers={
                    "Host": url.netloc.decode("ascii"),
                    "Accept": "image/*",
                    # What is not compressed cannot swell.
                    "Accept-Encoding": "identity",
                },
                extensions={"sni_hostname": url.host},
            )
            response = await client.send(request, stream=True)
            try:
                return await self._read(url, response)
            finally:
                await response.aclose()

    async def _read(self, url: httpx2.URL, response: httpx2.Response) -> bytes | httpx2.URL:
        if response.status_code in (301, 302, 303, 307, 308):
            return _joined(url, response.headers.get("location", ""))
        if response.status_code != 200:
            raise NotFetched(f"the answer is HTTP {response.status_code}", may_be_stale=True)
        data = bytearray()
        # As it comes, and counted as it comes: neither its length nor its encoding is believed.
        async for piece in response.aiter_raw():
            data += piece
            if len(data) > self.max_bytes:
                raise NotFetched("it is too big")
        return bytes(data)


def _read_url(text: str) -> httpx2.URL:
    if len(text) > MAX_URL_CHARS:
        raise NotFetched("its address is too long")
    try:
        return _usable(httpx2.URL(text.strip()))
    except (httpx2.InvalidURL, ValueError):
        raise NotFetched("it has no address that can be read") from None


def _joined(url: httpx2.URL, location: str) -> httpx2.URL:
    if not location or len(location) > MAX_URL_CHARS:
        raise NotFetched("it is redirected to nowhere")
    try:
        return _usable(url.join(location))
    except (httpx2.InvalidURL, ValueError):
        raise NotFetched("it is redirected to no address that can be read") from None


def _usable(url: httpx2.URL) -> httpx2.URL:
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise NotFetched("its address is none of http or https")
    if url.port is not None and not 0 < url.port < 65_536:
        raise NotFetched("its address has a port that there is not")
    return url.copy_with(fragment=None)
