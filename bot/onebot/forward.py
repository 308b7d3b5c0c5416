"""Merged forwards: the nodes inside, in the shapes of every client.

A forward's content may be inside its segment, or in the answer of ``get_forward_msg``; see
``docs/onebot.md``, "Messages".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from bot.model import Segment
from bot.onebot.segments import read_segments
from bot.onebot.values import account_text, id_text, items, mapping, name_text

MAX_DEPTH = 3
"""How deep forwards inside forwards are followed: ``docs/onebot.md``, "Messages"."""

MAX_LINES = 100
"""How many lines of forwards one message shows in total."""

Answers = Mapping[str, object]
"""Answers of ``get_forward_msg`` by forward id."""

NO_ANSWERS: Answers = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Node:
    """One forwarded message. QQ hides some senders, so each field may be empty."""

    user_id: str
    name: str
    segments: tuple[Segment, ...]

    @property
    def forwards(self) -> Iterator[Segment]:
        """The merged forwards inside this one."""
        return (segment for segment in self.segments if segment.type == "forward")


def forward_id(segments: Iterable[Segment], answers: Answers = NO_ANSWERS) -> str | None:
    """Return the id of the first merged forward whose content has to be fetched, if any.

    Forwards inside forwards count down to ``MAX_DEPTH``. ``answers`` are those fetched so far;
    keep a failed fetch there too (as ``None``), so that it is not named again.
    """
    return next(_unknown_ids(segments, answers), None)


def _unknown_ids(segments: Iterable[Segment], answers: Answers) -> Iterator[str]:
    for segment in segments:
        if segment.type == "forward":
            yield from _unknown_id(segment, answers)
            nodes = walk(raw_nodes(segment, answers), answers)
            for depth, node in islice(nodes, MAX_LINES):
                for inner in node.forwards if depth < MAX_DEPTH else ():
                    yield from _unknown_id(inner, answers)


def _unknown_id(segment: Segment, answers: Answers) -> Iterator[str]:
    id_ = id_text(segment.data.get("id"))
    if id_ and id_ not in answers and not raw_nodes(segment, answers):
        yield id_


def raw_nodes(segment: Segment, answers: Answers) -> Sequence[object]:
    """Return the nodes of a ``forward`` segment as they arrived; empty if they are not known."""
    fetched = answers.get(id_text(segment.data.get("id")))
    return _nodes_in(segment.data) or _nodes_in(fetched)


def _nodes_in(answer: object) -> Sequence[object]:
    """Return the nodes in an answer of ``get_forward_msg``, or in a list of nodes."""
    for value in (answer, *map(mapping(answer).get, ("messages", "message", "content"))):
        if nodes := [item for item in items(value) if isinstance(item, Mapping)]:
            return nodes
    return ()


def walk(nodes: Sequence[object], answers: Answers, depth: int = 1) -> Iterator[tuple[int, Node]]:
    """Yield every node with its depth, those inside a node right after it; lazily."""
    for raw in nodes:
        node = read_node(raw)
        yield depth, node
        for inner in node.forwards if depth < MAX_DEPTH else ():
            yield from walk(raw_nodes(inner, answers), answers, depth + 1)


def read_node(raw: object) -> Node:
    """Read a ``node`` segment, a message with a ``sender``, or a bare segment."""
    outer = mapping(raw)
    if outer.get("type") == "node":
        return _node_of(mapping(outer.get("data")))
    if isinstance(outer.get("type"), str) and "sender" not in outer:
        return Node("", "", read_segments(outer))
    return _node_of(outer)


def _node_of(data: Mapping[str, object]) -> Node:
    sender = mapping(data.get("sender"))
    user_ids = (sender.get("user_id"), data.get("user_id"), data.get("uin"))
    names = (sender.get("card"), sender.get("nickname"), data.get("nickname"), data.get("name"))
    return Node(
        next(filter(None, map(account_text, user_ids)), ""),
        next(filter(None, map(name_text, names)), ""),
        read_segments(data.get("message"))
        or read_segments(data.get("content"), data.get("raw_message")),
    )
