"""Pictures from real sockets, and everything that a picture's address may lead to instead."""

import asyncio
import gzip
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import pytest

from bot.errors import NotFetched
from bot.fetch import (
    MAX_REDIRECTS,
    Address,
    Picture,
    fetch_picture,
    is_public,
    resolved,
    sniffed,
)
from tests.verbs.picture_server import (
    PNG,
    PictureServer,
    answer,
    certificate_for,
    drip,
    flood,
    here,
    is_loopback,
    picture_server,
    raw,
    redirect,
    silence,
)

fetch_here = partial(fetch_picture, allow=is_loopback, seconds=5)
SMALL = 100_000


@pytest.fixture
async def server() -> AsyncIterator[PictureServer]:
    """A server with one picture."""
    async with picture_server() as opened:
        yield opened


async def refusal(url: str, **options: object) -> NotFetched:
    with pytest.raises(NotFetched) as caught:
        await fetch_here(url, **options)  # pyright: ignore[reportArgumentType]
    return caught.value


async def test_a_picture_is_fetched_whole(server: PictureServer):
    assert await fetch_here(server.url("/cat.png?rkey=a%20b")) == Picture("image/png", PNG)
    (head,) = server.requests
    assert head.startswith("GET /cat.png?rkey=a%20b HTTP/1.1\r\n")
    assert f"host: 127.0.0.1:{server.port}\r\n" in head.lower()


async def test_what_it_is_called_does_not_make_it_a_picture(server: PictureServer):
    server.paths["/page"] = answer(b"<html>cat.png</html>", content_type="image/png")
    server.paths["/cat"] = answer(PNG, content_type="text/html")
    assert "no picture" in str(await refusal(server.url("/page")))
    assert (await fetch_here(server.url("/cat"))).media_type == "image/png"


@pytest.mark.parametrize("status", ["400 Bad Request", "403 Forbidden", "404 Gone", "410 Gone"])
async def test_an_expired_address_may_be_asked_for_anew(server: PictureServer, status: str):
    server.paths["/old"] = answer(b"{}", status)
    assert (await refusal(server.url("/old"))).may_be_stale


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_picture_that_is_too_big_is_cut_off_whether_or_not_it_tells_its_size(
    server: PictureServer, chunked: bool
):
    server.paths["/big"] = flood(50_000_000, chunked=chunked)
    assert "too big" in str(await refusal(server.url("/big"), max_bytes=SMALL))


async def test_a_picture_may_be_as_big_as_is_allowed(server: PictureServer):
    server.paths["/cat"] = answer(PNG + bytes(SMALL - len(PNG)))
    assert len((await fetch_here(server.url("/cat"), max_bytes=SMALL)).data) == SMALL


async def test_a_length_that_is_a_lie_is_believed_in_neither_direction(server: PictureServer):
    server.paths["/long"] = answer(PNG, content_length="99999999999999999999")
    server.paths["/negative"] = answer(PNG, content_length="-1")
    await refusal(server.url("/long"))
    await refusal(server.url("/negative"))


async def test_what_is_compressed_is_not_unpacked(server: PictureServer):
    bomb = gzip.compress(PNG + bytes(5_000_000))
    server.paths["/bomb"] = answer(bomb, content_encoding="gzip")
    assert "no picture" in str(await refusal(server.url("/bomb"), max_bytes=SMALL))


@pytest.mark.parametrize("behaviour", [silence, drip])
async def test_a_server_that_takes_too_long_is_left_alone(server: PictureServer, behaviour):
    server.paths["/slow"] = behaviour
    assert "in time" in str(await refusal(server.url("/slow"), seconds=0.2))


async def test_a_redirect_is_followed(server: PictureServer):
    server.paths["/a"] = redirect("/b")
    server.paths["/b"] = redirect(server.url("/cat.png"), "308 Permanent Redirect")
    assert (await fetch_here(server.url("/a"))).data == PNG


async def test_a_redirect_is_judged_like_the_first_address(server: PictureServer):
    """A public name that redirects to this machine gets nothing from it."""
    server.paths["/a"] = redirect(server.url("/cat.png", host="127.0.0.2"))

    def only_the_first(address: Address) -> bool:
        return address == ip_address("127.0.0.1")

    error = await refusal(server.url("/a"), allow=only_the_first)
    assert "not public" in str(error)
    assert not error.may_be_stale
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "",
        "http://a@127.0.0.1/",
        "http://xn--a..b/cat.png",
    ],
)
async def test_a_redirect_leads_nowhere_but_to_the_web(server: PictureServer, location: str):
    server.paths["/a"] = redirect(location)
    await refusal(server.url("/a"))
    assert len(server.requests) == 1


async def test_redirects_in_a_circle_end(server: PictureServer):
    server.paths["/a"] = redirect("/a")
    assert "too often" in str(await refusal(server.url("/a")))
    assert len(server.requests) == 1 + MAX_REDIRECTS


async def test_cookies_are_not_carried_along(server: PictureServer):
    server.paths["/a"] = answer(b"", "302 Found", location="/cat.png", set_cookie="a=b")
    await fetch_here(server.url("/a"))
    assert "cookie" not in server.requests[1].lower()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not http at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nx: \x00\x1b[2J\r\ncontent-length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        b"HTTP/1.1 999 \xff\xfe\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://[\xff/\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: " + b"/a" * 5_000 + b"\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n\x89PNG\r\n\x1a\n",
    ],
)
async def test_whatever_a_server_sends_is_a_refusal_and_no_crash(
    server: PictureServer, data: bytes
):
    server.paths["/odd"] = raw(data)
    await refusal(server.url("/odd"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "cat.png",
        "file:///etc/passwd",
        "base64://iVBORw0KGgo=",
        "data:image/png;base64,iVBORw0KGgo=",
        "gopher://127.0.0.1/",
        "http://",
        "http://30001:secret@127.0.0.1/",
        "http://127.0.0.1:99999/",
        "http://[::1/",
        "http://a\r\nb/",
        "http://" + "a" * 300 + "/",
        "http://127.0.0.1/" + "a" * 5_000,
        "http://\u202e/",
    ],
)
async def test_what_is_no_address_is_refused(url: str):
    await refusal(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_this_machine_is_refused(server: PictureServer, host: str):
    with pytest.raises(NotFetched, match=r"not public|cannot be found"):
        await fetch_picture(server.url(host=host))
    assert server.requests == []


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "pictures.example"])
async def test_this_machine_is_refused_however_it_is_spelt(server: PictureServer, host: str):
    with pytest.raises(NotFetched, match="not public"):
        await fetch_picture(server.url(host=host), resolve=here)
    assert server.requests == []


async def test_an_error_does_not_repeat_the_address(server: PictureServer):
    for url in (server.url("/secret-key"), "http://127.0.0.1:1/secret-key", "secret-key://x"):
        assert "secret-key" not in str(await refusal(url))


async def test_a_name_is_looked_up_once_and_what_it_led_to_is_what_is_asked(
    server: PictureServer,
):
    """A name that leads elsewhere by the time of the connection gains nothing by it."""
    looked_up: list[str] = []

    async def rebinding(host: str, port: int) -> list[Address]:
        looked_up.append(host)
        return [ip_address("127.0.0.1" if len(looked_up) == 1 else "169.254.169.254")]

    picture = await fetch_here(server.url(host="pictures.example"), resolve=rebinding)
    assert picture.data == PNG
    assert looked_up == ["pictures.example"]
    assert f"host: pictures.example:{server.port}\r\n" in server.requests[0].lower()


async def test_a_name_with_one_address_that_is_not_allowed_is_refused(server: PictureServer):
    async def mixed(host: str, port: int) -> list[Address]:
        return [ip_address("127.0.0.1"), ip_address("10.0.0.1")]

    await refusal(server.url(host="pictures.example"), resolve=mixed)
    assert server.requests == []


async def test_of_several_addresses_one_that_answers_is_enough(server: PictureServer):
    async def both(host: str, port: int) -> list[Address]:
        return [ip_address("127.0.0.2"), ip_address("127.0.0.1")]

    assert (await fetch_here(server.url(host="pictures.example"), resolve=both)).data == PNG


async def test_a_name_that_leads_nowhere_is_refused():
    async def nowhere(host: str, port: int) -> list[Address]:
        return []

    assert "reached" in str(await refusal("http://pictures.example/a", resolve=nowhere))


async def test_https_asks_for_the_name_and_checks_it_though_it_connects_to_an_address(
    tmp_path: Path,
):
    tls, trusting = certificate_for("pictures.example", tmp_path)
    async with picture_server(tls) as server:
        url = server.url(host="pictures.example", scheme="https")
        picture = await fetch_here(url, resolve=here, tls=trusting)
        assert picture.data == PNG
        assert server.names == ["pictures.example"]
        wrong = server.url(host="other.example", scheme="https")
        assert "reached" in str(await refusal(wrong, resolve=here, tls=trusting))
        assert len(server.requests) == 1


async def test_https_with_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path):
    tls, _ = certificate_for("pictures.example", tmp_path)
    async with picture_server(tls) as server:
        await refusal(server.url(host="pictures.example", scheme="https"), resolve=here)
        assert server.requests == []


async def test_a_download_can_be_cancelled(server: PictureServer):
    server.paths["/slow"] = silence
    task = asyncio.create_task(fetch_here(server.url("/slow")))
    await server.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.5",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2001:db8::1",
        "2002:7f00:1::",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_address_that_is_not_the_internet_s_is_not_public(address: str):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_an_address_of_the_internet_is_public(address: str):
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"),
        (b"GIF89a\x01\x00", "image/gif"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"BM" + bytes(12) + (40).to_bytes(4, "little"), "image/bmp"),
        (b"BM is how this text begins", None),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"", None),
    ],
)
def test_a_picture_is_known_by_how_it_begins(data: bytes, kind: str | None):
    assert sniffed(data) == kind


async def test_a_name_is_looked_up_while_all_shared_threads_are_busy():
    loop, done = asyncio.get_running_loop(), threading.Event()
    shared = ThreadPoolExecutor(1)
    loop.set_default_executor(shared)
    busy = loop.run_in_executor(None, done.wait)
    try:
        assert await asyncio.wait_for(resolved("127.0.0.1", 80), 5) == [ip_address("127.0.0.1")]
    finally:
        done.set()
        await busy
