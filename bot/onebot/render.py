"""Segments as the text that people, prompts and search see.

The forms are those of ``docs/onebot.md``, "Messages". Text is kept as it was written; every
name, title and label that comes with a segment is one line and bounded.
"""

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from bot.model import EVERYONE, Message, Segment
from bot.onebot.faces import FACE_NAMES
from bot.onebot.forward import (
    MAX_LINES,
    NO_ANSWERS,
    Answers,
    Node,
    raw_nodes,
    walk,
)
from bot.onebot.values import clean_text, id_text, integer, mapping, name_text, unix_line_ends
from bot.text import display_name, single_line

MAX_LABEL_CHARS = 60

Names = Mapping[str, str] | Callable[[str], str | None]
"""What to call a user id: a table or a look-up."""

Data = Mapping[str, Any]

_XML_TITLE = re.compile(
    r"""\bbrief="([^"]{1,200})"|\bbrief='([^']{1,200})'|<title[^<>]{0,200}>([^<]{1,200})<"""
)


def render(segments: Iterable[Segment], names: Names, answers: Answers = NO_ANSWERS) -> str:
    """Return readable text: ``@小鱼(30001) 看 [图片]``.

    Args:
        segments: of one message; ``reply`` segments show nothing.
        names: names for mentions whose segment carries none.
        answers: of ``get_forward_msg`` by forward id, for merged forwards without content.
    """
    return "".join(_pieces(segments, _View(names, answers)))


def unnamed_mentions(message: Message) -> tuple[str, ...]:
    """Return whom ``message`` mentions without a name, so that the caller can look them up."""
    ats = (segment.data for segment in message.segments if segment.type == "at")
    unnamed = (id_text(data.get("qq")) for data in ats if not _own_name(data))
    return tuple(dict.fromkeys(id_ for id_ in unnamed if id_ and id_.lower() != EVERYONE))


@dataclass(frozen=True, slots=True)
class _View:
    """What a rendering may look up."""

    names: Names
    answers: Answers

    def name_of(self, user_id: str) -> str:
        """Return the sanitised name of ``user_id``, or ``""``."""
        look_up = self.names if callable(self.names) else self.names.get
        return display_name(look_up(user_id) or "", "")


def _pieces(segments: Iterable[Segment], view: _View) -> Iterator[str]:
    """Yield the rendering of each segment; what follows a forward's lines starts a new line."""
    lines_left = MAX_LINES
    after_lines = False
    for segment in segments:
        piece = _piece(segment, view)
        if piece:
            yield f"\n{piece}" if after_lines else piece
            after_lines = False
        if segment.type == "forward":
            nodes = walk(raw_nodes(segment, view.answers), view.answers)
            lines = list(_lines(islice(nodes, lines_left), view))
            lines_left -= len(lines)
            after_lines = bool(lines)
            yield from (f"\n{line}" for line in lines)


def _lines(nodes: Iterable[tuple[int, Node]], view: _View) -> Iterator[str]:
    for depth, node in nodes:
        text = "".join(_piece(segment, view) for segment in node.segments)
        yield f"{'  ' * depth}{_speaker(node, view)}{_joined(text)}"


def _joined(text: str) -> str:
    return " ".join(filter(None, text.splitlines()))


def _speaker(node: Node, view: _View) -> str:
    name = display_name(node.name, "") or view.name_of(node.user_id)
    speaker = f"{name}({node.user_id})" if name and node.user_id else name or node.user_id
    return f"{speaker}：" if speaker else ""


def _piece(segment: Segment, view: _View) -> str:
    painter = _PAINTERS.get(segment.type)
    return painter(segment.data, view) if painter else _label(segment.type)


def _label(kind: str, detail: str = "") -> str:
    """Return ``[kind]`` or ``[kind:detail]``, on one line whatever they hold."""
    kind, detail = (display_name(part, "", MAX_LABEL_CHARS) for part in (kind, detail))
    return f"[{kind}:{detail}]" if detail else f"[{kind or '未知消息'}]"


def _first(data: Data, *keys: str) -> str:
    return next(filter(None, (name_text(data.get(key)) for key in keys)), "")


def _text(data: Data, _view: _View) -> str:
    value = data.get("text")
    text = value if isinstance(value, str) else name_text(value)
    return unix_line_ends(clean_text(text))


def _at(data: Data, view: _View) -> str:
    user_id = id_text(data.get("qq"))
    if user_id.lower() == EVERYONE:
        return "@全体成员"
    name = _own_name(data) or view.name_of(user_id)
    if name and user_id:
        return f"@{name}({user_id})"
    return f"@{name or user_id or '某人'}"


def _own_name(data: Data) -> str:
    return display_name(name_text(data.get("name")).strip().removeprefix("@"), "")


def _image(data: Data, _view: _View) -> str:
    if name_text(data.get("type")) == "flash":
        return "[闪照]"
    kind = integer(data.get("sub_type", data.get("subType")))
    is_sticker = bool(kind) or bool(data.get("emoji_id"))
    return _sticker(data, "动画表情") if is_sticker else "[图片]"


def _sticker(data: Data, fallback: str) -> str:
    summary = single_line(_first(data, "summary")).strip()
    return _label(summary.removeprefix("[").removesuffix("]") or fallback)


def _market_face(data: Data, _view: _View) -> str:
    return _sticker(data, "商城表情")


def _face(data: Data, _view: _View) -> str:
    spoken = _first(mapping(data.get("raw")), "faceText").strip().lstrip("/").strip("[]")
    id_ = id_text(data.get("id"))
    return _label("表情", spoken or FACE_NAMES.get(id_, id_))


def _file(data: Data, _view: _View) -> str:
    path = _first(data, "name", "file_name", "file")
    return _label("文件", re.split(r"[/\\]", path)[-1])


def _dice(data: Data, _view: _View) -> str:
    return _label("骰子", _first(data, "result"))


def _card(data: Data, _view: _View) -> str:
    card = data.get("data", data.get("content"))
    if isinstance(card, str):
        card = _parsed(card)
    title = _json_title(card) if isinstance(card, Mapping) else _xml_title(card)
    return _label("卡片", title)


def _parsed(text: str) -> object:
    """Return the JSON in ``text``, else ``text``; a card may nest deeper than a parser goes."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json_title(card: Data) -> str:
    details = [mapping(detail) for detail in mapping(card.get("meta")).values()]
    titles = (_first(detail, "title", "desc") for detail in details)
    return _first(card, "prompt", "title") or next(filter(None, titles), "") or _first(card, "desc")


def _xml_title(text: object) -> str:
    match = _XML_TITLE.search(text) if isinstance(text, str) else None
    return html.unescape(next(filter(None, match.groups()), "")) if match else ""


def _contact(data: Data, _view: _View) -> str:
    kind = "推荐群" if name_text(data.get("type")) == "group" else "推荐好友"
    return _label(kind, id_text(data.get("id")))


def _markdown(data: Data, _view: _View) -> str:
    content = data.get("content")
    text = unix_line_ends(clean_text(content)) if isinstance(content, str) else ""
    return text or "[Markdown]"


def _forward(data: Data, view: _View) -> str:
    count = len(raw_nodes(Segment("forward", data), view.answers))
    return f"[合并转发 {count} 条]" if count else "[合并转发]"


def _fixed(text: str) -> Callable[[Data, _View], str]:
    return lambda _data, _view: text


def _titled(kind: str, *keys: str) -> Callable[[Data, _View], str]:
    return lambda data, _view: _label(kind, _first(data, *keys))


_PAINTERS: Mapping[str, Callable[[Data, _View], str]] = MappingProxyType(
    {
        "text": _text,
        "at": _at,
        "reply": _fixed(""),
        "image": _image,
        "mface": _market_face,
        "marketface": _market_face,
        "face": _face,
        "record": _fixed("[语音]"),
        "video": _fixed("[视频]"),
        "file": _file,
        "json": _card,
        "xml": _card,
        "forward": _forward,
        "node": _fixed("[合并转发]"),
        "poke": _fixed("[戳一戳]"),
        "shake": _fixed("[窗口抖动]"),
        "dice": _dice,
        "rps": _fixed("[猜拳]"),
        "music": _titled("音乐", "title"),
        "share": _titled("链接", "title", "url"),
        "location": _titled("位置", "title", "content"),
        "contact": _contact,
        "markdown": _markdown,
        "redbag": _titled("红包", "title"),
        "gift": _fixed("[礼物]"),
        "keyboard": _fixed("[按钮]"),
    }
)
