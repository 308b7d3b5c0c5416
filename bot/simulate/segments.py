"""Builders of raw message segments, as NapCat sends them (``docs/onebot.md``, "Messages")."""

import json
from collections.abc import Sequence
from typing import Any

RawSegment = dict[str, Any]
"""``{"type": …, "data": {…}}``, JSON as it goes over the wire."""


def segment(kind: str, **data: Any) -> RawSegment:
    """Return a segment of any type, known to OneBot or not."""
    return {"type": kind, "data": data}


def text(content: str) -> RawSegment:
    """Return plain text."""
    return segment("text", text=content)


def at(user_id: int | str, name: str | None = None) -> RawSegment:
    """Return a mention; only some implementations send the ``name``."""
    named = {} if name is None else {"name": name}
    return segment("at", qq=str(user_id), **named)


def at_all() -> RawSegment:
    """Return ``@全体成员``, which carries no name."""
    return segment("at", qq="all")


def face(face_id: int, name: str = "") -> RawSegment:
    """Return a built-in face; ``raw`` is an object in the array format."""
    raw = {"faceIndex": face_id, "faceType": 1, "faceText": f"/{name}" if name else None}
    return segment("face", id=str(face_id), raw=raw)


def image(
    file: str = "AB.gif",
    *,
    summary: str = "",
    url: str = "https://multimedia.invalid/download?fileid=1&rkey=expires",
    sub_type: int = 0,
    size_bytes: int = 1234,
) -> RawSegment:
    """Return a picture; its size is a string and its address expires."""
    return segment(
        "image", summary=summary, file=file, sub_type=sub_type, url=url, file_size=str(size_bytes)
    )


def mface(name: str, emoji_id: str = "abcd1234") -> RawSegment:
    """Return a face of the market as other implementations send it."""
    return segment("mface", summary=f"[{name}]", emoji_id=emoji_id, emoji_package_id=235, key="k")


def reply(message_id: int | str) -> RawSegment:
    """Return a quote of a message; the id is a string."""
    return segment("reply", id=str(message_id))


def forward(forward_id: str, content: Sequence[RawSegment] | None = None) -> RawSegment:
    """Return a merged forward; ``content`` only where the implementation parses it."""
    parsed = {} if content is None else {"content": list(content)}
    return segment("forward", id=forward_id, **parsed)


def node(user_id: int | str, nickname: str, content: Sequence[RawSegment] | str) -> RawSegment:
    """Return one line of a merged forward."""
    inner = content if isinstance(content, str) else list(content)
    return segment("node", user_id=str(user_id), nickname=nickname, content=inner)


def json_card(prompt: str, app: str = "com.tencent.structmsg", **fields: Any) -> RawSegment:
    """Return a card: JSON within a string."""
    payload = {"app": app, "prompt": prompt, **fields}
    return segment("json", data=json.dumps(payload, ensure_ascii=False))


def file(name: str, size_bytes: int = 1024, file_id: str = "/f-1") -> RawSegment:
    """Return a file."""
    return segment("file", file=name, file_id=file_id, file_size=str(size_bytes))


def record(name: str = "voice.amr", size_bytes: int = 2048) -> RawSegment:
    """Return a voice message."""
    return segment("record", file=name, url="", file_size=str(size_bytes))


def video(name: str = "clip.mp4", size_bytes: int = 4096) -> RawSegment:
    """Return a video."""
    return segment("video", file=name, url="", file_size=str(size_bytes))
