"""A web server on this machine that serves pictures, and everything that is none."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bot.fetch import Address

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000154a24f5f0000000049454e44ae426082"
)
OTHER_PNG = PNG + b"another"

Serve = Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes = PNG, status: str = "200 OK", **headers: str) -> Serve:
    """Return what answers with a body and its length."""
    fields = {"content-length": str(len(body)), "content-type": "image/png", **headers}

    async def serve(writer: asyncio.StreamWriter) -> None:
        lines = (f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode() + body)

    return serve


def redirect(location: str, status: str = "302 Found") -> Serve:
    """Return what sends elsewhere."""
    return answer(b"", status, location=location)


def flood(length: int, *, chunked: bool) -> Serve:
    """Return what sends a picture of ``length`` bytes, with its length told or not."""
    header = "transfer-encoding: chunked" if chunked else f"content-length: {length}"

    async def serve(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\n{header}\r\n\r\n".encode())
        for start in range(0, length, 65_536):
            piece = PNG if start == 0 else b""
            piece += bytes(65_536 - len(piece))
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            await writer.drain()

    return serve


async def silence(writer: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    """Answer a byte at a time, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    while True:
        writer.write(b"\x89")
        await writer.drain()
        await asyncio.sleep(0.01)


def raw(data: bytes) -> Serve:
    """Return what sends any bytes at all."""

    async def serve(writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return serve


class PictureServer:
    """A server whose paths do as they are told; every connection is closed after one answer."""

    def __init__(self) -> None:
        self.paths: dict[str, Serve] = {"/cat.png": answer()}
        self.requests: list[str] = []
        """The heads of all requests."""
        self.names: list[str | None] = []
        """Which host each TLS connection asked for."""
        self.asked = asyncio.Event()
        self.port = 0

    def url(self, path: str = "/cat.png", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.requests.append(head)
            self.asked.set()
            path = head.split()[1].partition("?")[0]
            await self.paths.get(path, answer(b"gone", "404 Not Found"))(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def picture_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[PictureServer]:
    """Serve on a free port until the end."""
    pictures = PictureServer()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(pictures.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: pictures.names.append(name)
    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    pictures.port = server.sockets[0].getsockname()[1]
    try:
        yield pictures
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def is_loopback(address: Address) -> bool:
    """Allow this machine, as only tests do."""
    return address.is_loopback


async def here(host: str, port: int) -> list[Address]:
    """Let every name lead to this machine."""
    return [ip_address("127.0.0.1")]


def certificate_for(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return what a server of that name needs, and what trusts it and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    both = folder / f"{name}.pem"
    both.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(both)
    client = ssl.create_default_context(cafile=both)
    return server, client
