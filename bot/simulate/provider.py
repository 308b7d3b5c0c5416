"""A real OpenAI-compatible server on this machine, that answers, or fails, as it is told.

It serves tests, the demo, load runs and trials by hand::

    python -m bot.simulate.provider 8901 --answer 好的

See ``docs/architecture.md``, "The simulator". It speaks HTTP through h11 on plain asyncio
sockets, because it must also do what no web framework lets one do: break off in mid-answer.
"""

import argparse
import asyncio
import hashlib
import json
import socket
import struct
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Literal, Self

import h11

READ_BYTES = 65_536
REQUESTS_KEPT = 10_000
STREAM_PIECE_CHARS = 8
EMBEDDING_DIMENSIONS = 8
IMAGE_TOKENS = 85
"""What a picture costs, of whatever size."""
CREATED_AT = 1_700_000_000
"""What every answer says about its birth; nothing here reads a clock."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request as it arrived. The key is not among the headers."""

    method: str
    path: str
    purpose: str
    """The ``X-Purpose`` header; empty without one."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Mapping[str, Any]
    arrived_seconds: float
    """When the first of it came: monotonic seconds of the event loop, to be compared with
    ``loop.time()``."""
    authorization: str = field(default="", repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return what a log of requests shows: everything but the headers."""
        return {
            "method": self.method,
            "path": self.path,
            "purpose": self.purpose,
            "arrived_seconds": self.arrived_seconds,
            "body": dict(self.body),
        }


@dataclass(frozen=True, slots=True)
class Called:
    """A tool that an answer wants used."""

    name: str
    arguments: str = "{}"
    id: str = ""
    """Numbered if it is empty."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A completion. Counts that are ``None`` are derived from the texts."""

    text: str = ""
    finish_reason: str = "stop"
    calls: tuple[Called, ...] = ()
    reasoning: str = ""
    """Sent as ``reasoning_content``."""
    refusal: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int = 0
    completion_tokens: int | None = None
    has_usage: bool = True
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """An error answer in OpenAI's form."""

    status: int
    code: str = ""
    message: str = "this is a scripted failure"
    param: str = ""
    retry_after: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """Any bytes at all."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer until the client hangs up."""


@dataclass(frozen=True, slots=True)
class Reset:
    """A connection reset, after ``sent`` went out as the beginning of a longer body."""

    sent: bytes = b""


Outcome = str | Answer | Failure | Raw | Silence | Reset
Script = Outcome | Callable[[ReceivedRequest], Outcome]

HTML_GARBAGE = Raw(b"<!doctype html><html><body>Welcome to the hotel</body></html>", "text/html")
HALF_JSON = Raw(b'{"id":"chatcmpl-1","choices":[{"index":0,"mess')
OTHER_SHAPE = Raw(b'["not", {"a": "completion"}]')
EMPTY_CHOICES = Raw(b'{"id":"chatcmpl-1","object":"chat.completion","choices":[]}')
FILTERED_ANSWER = Answer("", finish_reason="content_filter")
TOO_LONG = Failure(
    400,
    "context_length_exceeded",
    "This model's maximum context length is {window} tokens. However, your messages resulted in "
    "{tokens} tokens. Please reduce the length of the messages.",
    "messages",
)
TOO_LONG_OTHERWISE = Failure(400, "", "input is too long for requested model")
"""As others say it: no code, and no number."""


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """What the server has reported so far, in tokens."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0


class ModelServer:
    """A server to be used as an async context manager.

    Args:
        answer: what it does when nothing is queued.
        port: 0 for any free one.
        delay_seconds: real time before every answer.
        on_request: called with each request on arrival.

    The attributes below may be changed at any time:

    Attributes:
        requests: what arrived, oldest first; the last ``REQUESTS_KEPT``.
        usage: the sums of what it reported.
        api_key: the only key it takes; any if empty.
        models: what ``/models`` lists, and the only names taken unless empty.
        rejected_formats: ``response_format`` types that get a 400.
        limit_field: the only name of the completion limit that it takes.
        max_tokens_allowed: the most completion tokens that may be asked for.
        insist_on_stream: answer 400 to whoever does not ask for a stream.
        takes_stream_options: answer 400 to ``stream_options`` if false.
        takes_tools: answer 400 to whoever offers tools if false.
        window_tokens: the longest prompt that it takes, by its own count.
        too_long: what it answers to longer ones; may name ``{window}`` and ``{tokens}``.
        streams_as: the content type of event streams; some gateways get it wrong.
    """

    def __init__(
        self,
        answer: Script = "好的",
        *,
        port: int = 0,
        delay_seconds: float = 0.0,
        on_request: Callable[[ReceivedRequest], None] | None = None,
    ) -> None:
        self.answer = answer
        self.delay_seconds = delay_seconds
        self.requests: deque[ReceivedRequest] = deque(maxlen=REQUESTS_KEPT)
        self.usage = UsageTotals()
        self.api_key = ""
        self.models: tuple[str, ...] = ()
        self.rejected_formats: frozenset[str] = frozenset()
        self.limit_field: Literal["", "max_tokens", "max_completion_tokens"] = ""
        self.max_tokens_allowed: int | None = None
        self.insist_on_stream = False
        self.takes_stream_options = True
        self.takes_tools = True
        self.window_tokens: int | None = None
        self.too_long = TOO_LONG
        self.streams_as = "text/event-stream"
        self._port = port
        self._on_request = on_request
        self._scripts: dict[str | None, deque[Script]] = defaultdict(deque)
        self._arrived = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        """The address to configure as ``OPENAI_BASE_URL``; known once it runs."""
        return f"http://127.0.0.1:{self._port}/v1"

    def enqueue(self, *scripts: Script, purpose: str | None = None) -> None:
        """Add outcomes for one purpose, or for any; those for the purpose itself go first.

        ``/embeddings`` has vectors for an answer unless something is queued for ``embed``.
        """
        self._scripts[purpose].extend(scripts)

    async def until_requests(self, count: int = 1) -> None:
        """Wait until at least ``count`` requests are among ``requests``."""
        while len(self.requests) < count:
            self._arrived.clear()
            await self._arrived.wait()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def respond(self, request: ReceivedRequest) -> Outcome:
        """Return what to do about ``request``."""
        if self.api_key and request.authorization != f"Bearer {self.api_key}":
            return Failure(401, "invalid_api_key", "Incorrect API key provided")
        if request.path.endswith("/models"):
            return _json_body(_model_list(self.models))
        if request.method != "POST" or not request.path.startswith("/v1/"):
            return Failure(404, "not_found", f"unknown path {request.path}")
        complaint = self._complaint(request.body)
        if complaint is not None:
            return complaint
        if request.path.endswith("/embeddings") and not self._scripts["embed"]:
            return self._embeddings(request.body)
        script = self._next(request.purpose)
        return script(request) if callable(script) else script

    def _next(self, purpose: str) -> Script:
        for scripts in (self._scripts[purpose], self._scripts[None]):
            if scripts:
                return scripts.popleft()
        return self.answer

    def _complaint(self, body: Mapping[str, Any]) -> Failure | None:
        """Return the 400 or 404 that a provider with this one's limits would answer."""
        model = body.get("model")
        if self.models and model not in self.models:
            return Failure(404, "model_not_found", f"The model {model} does not exist")
        if self.insist_on_stream and not body.get("stream"):
            return Failure(400, "invalid_parameter_error", "This model only supports stream mode")
        if "stream_options" in body and not self.takes_stream_options:
            return Failure(400, "", "Unknown field: stream_options", "stream_options")
        if "tools" in body and not self.takes_tools:
            return Failure(400, "", f"{model} does not support tools")
        return (
            self._length_complaint(body)
            or self._format_complaint(body)
            or self._limit_complaint(body)
        )

    def _length_complaint(self, body: Mapping[str, Any]) -> Failure | None:
        tokens = prompt_tokens(body)
        if self.window_tokens is None or tokens <= self.window_tokens:
            return None
        words = self.too_long.message.format(window=self.window_tokens, tokens=tokens)
        return replace(self.too_long, message=words)

    def _format_complaint(self, body: Mapping[str, Any]) -> Failure | None:
        kind = (body.get("response_format") or {}).get("type", "")
        if kind not in self.rejected_formats:
            return None
        return Failure(400, "invalid_request_error", f"response_format {kind} is unavailable")

    def _limit_complaint(self, body: Mapping[str, Any]) -> Failure | None:
        for name in ("max_tokens", "max_completion_tokens"):
            wanted = body.get(name)
            if wanted is None:
                continue
            if self.limit_field and name != self.limit_field:
                words = f"Unsupported parameter: '{name}'. Use '{self.limit_field}' instead."
                return Failure(400, "unsupported_parameter", words, name)
            if self.max_tokens_allowed is not None and wanted > self.max_tokens_allowed:
                words = f"Invalid {name}, the valid range is [1, {self.max_tokens_allowed}]"
                return Failure(400, "invalid_request_error", words, name)
        return None

    def _embeddings(self, body: Mapping[str, Any]) -> Raw:
        given = body.get("input", "")
        texts = [given] if isinstance(given, str) else [str(each) for each in given]
        dimensions = int(body.get("dimensions") or EMBEDDING_DIMENSIONS)
        tokens = sum(map(_token_count, texts))
        self._count(UsageTotals(prompt=tokens))
        data = [
            {"object": "embedding", "index": index, "embedding": embedding(text, dimensions)}
            for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        model = body.get("model", "")
        return _json_body({"object": "list", "model": model, "data": data, "usage": usage})

    def _count(self, reported: UsageTotals) -> None:
        self.usage = UsageTotals(
            self.usage.prompt + reported.prompt,
            self.usage.cached + reported.cached,
            self.usage.completion + reported.completion,
        )

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._talk(_Wire(reader, writer))
        except (ConnectionError, h11.RemoteProtocolError):
            pass  # The client hung up, or is no HTTP client.
        except asyncio.CancelledError:
            pass  # The server is being closed, and this task ends here anyway.
        finally:
            self._connections.discard(task)
            writer.close()

    async def _talk(self, wire: "_Wire") -> None:
        while (request := await wire.read()) is not None:
            self.requests.append(request)
            self._arrived.set()
            if self._on_request is not None:
                self._on_request(request)
            outcome = self.respond(request)
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            if not await self._carry_out(outcome, request, wire):
                return

    async def _carry_out(self, outcome: Outcome, request: ReceivedRequest, wire: "_Wire") -> bool:
        """Do it, and say whether the connection can be used again."""
        if isinstance(outcome, Silence):
            await wire.until_hung_up()
            return False
        if isinstance(outcome, Reset):
            await wire.reset(outcome.sent)
            return False
        if isinstance(outcome, Failure):
            return await wire.send(_error_body(outcome), _retry_headers(outcome))
        if isinstance(outcome, Raw):
            return await wire.send(outcome)
        return await self._send_answer(outcome, request, wire)

    async def _send_answer(
        self, outcome: str | Answer, request: ReceivedRequest, wire: "_Wire"
    ) -> bool:
        answer = counted(Answer(outcome) if isinstance(outcome, str) else outcome, request.body)
        if answer.delay_seconds:
            await asyncio.sleep(answer.delay_seconds)
        streams = bool(request.body.get("stream"))
        wants_usage = bool((request.body.get("stream_options") or {}).get("include_usage"))
        if answer.has_usage and (wants_usage or not streams):
            self._count(_totals(answer))
        if not streams:
            return await wire.send(_json_body(completion(answer, request.body)))
        chunks = stream_chunks(answer, request.body, wants_usage=wants_usage)
        return await wire.stream(chunks, self.streams_as)


class _Wire:
    """One HTTP connection: h11 for the protocol, streams for the bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def read(self) -> ReceivedRequest | None:
        """Return the next request, or ``None`` when the client has closed."""
        head: h11.Request | None = None
        body = bytearray()
        arrived: float | None = None
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                received = await self._reader.read(READ_BYTES)
                # Before it is parsed: how long that takes is nothing of the client's.
                arrived = arrived or asyncio.get_running_loop().time()
                self._http.receive_data(received)
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return _request(head, bytes(body), arrived or asyncio.get_running_loop().time())
            else:
                return None

    async def send(self, raw: Raw, headers: Mapping[str, str] | None = None) -> bool:
        """Send a whole answer and say whether the connection can be used again."""
        fields = {"content-type": raw.content_type, **(headers or {})}
        fields["content-length"] = str(len(raw.body))
        self._write(h11.Response(status_code=raw.status, headers=list(fields.items())))
        self._write(h11.Data(data=raw.body))
        return await self._end()

    async def stream(self, chunks: Iterator[dict[str, Any]], content_type: str) -> bool:
        """Send ``chunks`` as server-sent events, the end mark included."""
        self._write(h11.Response(status_code=200, headers=[("content-type", content_type)]))
        for chunk in chunks:
            self._write(h11.Data(data=f"data: {_dumps(chunk)}\n\n".encode()))
            await self._writer.drain()
        self._write(h11.Data(data=b"data: [DONE]\n\n"))
        return await self._end()

    async def reset(self, sent: bytes) -> None:
        """Send the beginning of an answer, if any, and reset the connection."""
        if sent:
            length = str(len(sent) + 1_000)
            headers = [("content-type", "application/json"), ("content-length", length)]
            self._write(h11.Response(status_code=200, headers=headers))
            self._write(h11.Data(data=sent))
            await self._writer.drain()
        plug: socket.socket = self._writer.get_extra_info("socket")
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def until_hung_up(self) -> None:
        """Wait for the client to close the connection."""
        while await self._reader.read(READ_BYTES):
            pass

    def _write(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        self._writer.write(self._http.send(event) or b"")

    async def _end(self) -> bool:
        self._write(h11.EndOfMessage())
        await self._writer.drain()
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True


def counted(answer: Answer, body: Mapping[str, Any]) -> Answer:
    """Return ``answer`` with its token counts filled in from the texts."""
    prompt = prompt_tokens(body)
    wanted = "".join(each.name + each.arguments for each in answer.calls)
    said = _token_count(answer.text + answer.reasoning + wanted)
    finish = "tool_calls" if answer.calls and answer.finish_reason == "stop" else None
    return replace(
        answer,
        finish_reason=finish or answer.finish_reason,
        prompt_tokens=prompt if answer.prompt_tokens is None else answer.prompt_tokens,
        completion_tokens=said if answer.completion_tokens is None else answer.completion_tokens,
    )


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """Return how many tokens a prompt is counted as, calls and tools included."""
    messages = [each for each in body.get("messages") or [] if isinstance(each, Mapping)]
    said = sum(_content_tokens(each.get("content")) for each in messages)
    called = sum(
        _token_count(_dumps(each["tool_calls"])) for each in messages if "tool_calls" in each
    )
    return said + called + (_token_count(_dumps(body["tools"])) if body.get("tools") else 0)


def completion(answer: Answer, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``answer`` in the form of ``chat.completion``."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    message |= {"reasoning_content": answer.reasoning} if answer.reasoning else {}
    message |= {"refusal": answer.refusal} if answer.refusal else {}
    message |= (
        {"tool_calls": [_call(*pair) for pair in enumerate(answer.calls)]} if answer.calls else {}
    )
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    usage = {"usage": usage_object(answer)} if answer.has_usage else {}
    return {**_envelope("chat.completion", body), "choices": [choice], **usage}


def stream_chunks(
    answer: Answer, body: Mapping[str, Any], *, wants_usage: bool
) -> Iterator[dict[str, Any]]:
    """Yield ``answer`` in pieces, in the form of ``chat.completion.chunk``."""
    envelope = _envelope("chat.completion.chunk", body)
    if answer.reasoning:
        yield {**envelope, "choices": [_delta({"reasoning_content": answer.reasoning})]}
    for start in range(0, len(answer.text), STREAM_PIECE_CHARS):
        piece = answer.text[start : start + STREAM_PIECE_CHARS]
        yield {**envelope, "choices": [_delta({"content": piece})]}
    for piece in _call_pieces(answer.calls):
        yield {**envelope, "choices": [_delta({"tool_calls": [piece]})]}
    yield {**envelope, "choices": [_delta({}, answer.finish_reason)]}
    if wants_usage and answer.has_usage:
        yield {**envelope, "choices": [], "usage": usage_object(answer)}


def usage_object(answer: Answer) -> dict[str, Any]:
    """Return the ``usage`` of an answer whose counts are known."""
    totals = _totals(answer)
    return {
        "prompt_tokens": totals.prompt,
        "completion_tokens": totals.completion,
        "total_tokens": totals.prompt + totals.completion,
        "prompt_tokens_details": {"cached_tokens": totals.cached},
    }


def embedding(text: str, dimensions: int = EMBEDDING_DIMENSIONS) -> list[float]:
    """Return a vector that depends on ``text`` alone; each number is in [-1, 1]."""
    digest = hashlib.shake_256(text.encode("utf-8", "replace")).digest(dimensions)
    return [byte / 127.5 - 1 for byte in digest]


def _call(number: int, called: Called) -> dict[str, Any]:
    function = {"name": called.name, "arguments": called.arguments}
    return {"id": called.id or f"call-{number}", "type": "function", "function": function}


def _call_pieces(calls: tuple[Called, ...]) -> Iterator[dict[str, Any]]:
    """Yield calls as streams bring them: the name first, then the arguments in pieces."""
    for index, called in enumerate(calls):
        first = _call(index, called)
        first["function"]["arguments"] = ""
        yield {"index": index, **first}
        for start in range(0, len(called.arguments), STREAM_PIECE_CHARS):
            piece = called.arguments[start : start + STREAM_PIECE_CHARS]
            yield {"index": index, "function": {"arguments": piece}}


def _totals(answer: Answer) -> UsageTotals:
    return UsageTotals(
        answer.prompt_tokens or 0, answer.cached_tokens, answer.completion_tokens or 0
    )


def _envelope(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    model = body.get("model", "")
    return {"id": "chatcmpl-1", "object": kind, "created": CREATED_AT, "model": model}


def _delta(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}


def _model_list(models: tuple[str, ...]) -> dict[str, Any]:
    listed = [{"id": name, "object": "model", "created": CREATED_AT} for name in models]
    return {"object": "list", "data": listed}


def _error_body(failure: Failure) -> Raw:
    error = {
        "message": failure.message,
        "type": "scripted_error",
        "param": failure.param or None,
        "code": failure.code or None,
    }
    return replace(_json_body({"error": error}), status=failure.status)


def _retry_headers(failure: Failure) -> dict[str, str]:
    return {"retry-after": failure.retry_after} if failure.retry_after else {}


def _json_body(value: object) -> Raw:
    return Raw(_dumps(value).encode())


def _dumps(value: object) -> str:
    # Escapes keep lone surrogates sendable, as real providers do.
    return json.dumps(value, separators=(",", ":"))


def _content_tokens(content: object) -> int:
    """Count the content of a message, which may be a list of texts and pictures."""
    if not isinstance(content, list):
        return _token_count(str(content))
    parts = [part for part in content if isinstance(part, dict)]
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    return sum(map(_token_count, texts)) + IMAGE_TOKENS * (len(parts) - len(texts))


def _token_count(text: str) -> int:
    """Count like no tokenizer does, but always the same and never 0 for a text."""
    return -(-len(text) // 2)


def _request(head: h11.Request, body: bytes, arrived_seconds: float) -> ReceivedRequest:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    return ReceivedRequest(
        method=head.method.decode("ascii"),
        path=head.target.decode("ascii").partition("?")[0],
        purpose=headers.get("x-purpose", ""),
        authorization=headers.pop("authorization", ""),
        headers=headers,
        body=_object_in(body),
        arrived_seconds=arrived_seconds,
    )


def _object_in(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _print_request(request: ReceivedRequest) -> None:
    sys.stdout.write(json.dumps(request.as_json(), ensure_ascii=True) + "\n")
    sys.stdout.flush()


async def _run(port: int, answer: str, delay_seconds: float) -> None:
    server = ModelServer(answer, port=port, delay_seconds=delay_seconds, on_request=_print_request)
    async with server:
        sys.stderr.write(f"OPENAI_BASE_URL={server.base_url}\n")
        sys.stderr.flush()
        await asyncio.Event().wait()


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted, with one JSON line on stdout per request."""
    parser = argparse.ArgumentParser(
        prog="python -m bot.simulate.provider",
        description="An OpenAI-compatible server on 127.0.0.1 that always gives the same answer.",
    )
    parser.add_argument("port", type=int, help="0 for any free port; stderr names it")
    parser.add_argument("--answer", default="好的", help="the text of every completion")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before every answer")
    options = parser.parse_args(arguments)
    try:
        asyncio.run(_run(options.port, options.answer, options.delay))
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
