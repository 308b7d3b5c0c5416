"""What the simulated implementation does when the application calls its API.

Pure with respect to the wire: a call changes the world and has an outcome; the client sends it.
Return codes are those of ``docs/onebot.md``, "The connection".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from bot.model import Chat, Segment
from bot.simulate import cq, events
from bot.simulate.errors import Refusal, Unknown
from bot.simulate.events import RawEvent
from bot.simulate.segments import RawSegment, at, forward, text
from bot.simulate.world import ForwardNode, PendingRequest, Person, Utterance, World

FAILED = 1200
BAD_PARAMETERS = 1400
UNSUPPORTED = 1404
HISTORY_COUNT = 20


@dataclass(frozen=True, slots=True)
class Call:
    """One API call as it arrived."""

    action: str
    params: Mapping[str, Any]
    at: int
    """UTC milliseconds."""
    echo: Any = None
    arrived_seconds: float = 0.0
    """When its frame came, monotonic seconds of the event loop."""


@dataclass(frozen=True, slots=True)
class SentNode:
    """One line of a merged forward that the application sent."""

    user_id: str
    nickname: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """One message that the application sent."""

    chat: Chat
    segments: tuple[Segment, ...]
    message_id: int
    at: int
    """UTC milliseconds."""
    action: str
    executed_cq: tuple[str, ...] = ()
    """CQ codes within a raw string, which every real implementation executes. Empty unless the
    application sent text as a message string; anything here that people or a model wrote is an
    injection."""
    nodes: tuple[SentNode, ...] = ()
    """The lines, if this is a merged forward."""

    @property
    def text(self) -> str:
        """The plain text; of a merged forward, its lines."""
        lines = [plain_text(node.segments) for node in self.nodes]
        return "\n".join(lines) if lines else plain_text(self.segments)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where calls are answered: the world, and how messages are written."""

    world: World
    string_format: bool = False

    def event_of(self, spoken: Utterance) -> RawEvent:
        """Return a message of the world as the event that reports it."""
        group = self.world.groups.get(int(spoken.chat.id)) if spoken.chat.is_group else None
        return events.of_utterance(
            self.world.account,
            spoken,
            group_name=group.name if group else "",
            string_format=self.string_format,
        )


@dataclass(frozen=True, slots=True)
class Performed:
    """The outcome of a call that succeeded."""

    data: Any = None
    sent: Sent | None = None
    report: RawEvent | None = None
    """The ``message_sent`` event of what was sent."""
    events: tuple[RawEvent, ...] = ()
    """What else happens because of the call."""
    is_async: bool = False
    """Whether the call's name ends in ``_async``: it is answered with a promise, not with data."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What goes over the wire because of a call: its answer (without ``echo``) and events."""

    answer: RawEvent
    report: RawEvent | None = None
    events: tuple[RawEvent, ...] = ()


Handler = Callable[[Desk, Call], Performed]


def perform(desk: Desk, call: Call) -> Performed:
    """Do what a call asks for.

    Raises:
        Refusal: it is unknown, lacks parameters, or the platform does not allow it.
    """
    handler = _HANDLERS.get(call.action.removesuffix("_async"))
    if handler is None:
        raise Refusal(UNSUPPORTED, f"不支持的API {call.action}")
    try:
        done = handler(desk, call)
    except Unknown as unknown:
        raise Refusal(FAILED, f"不存在: {unknown}") from unknown
    return replace(done, data=None, is_async=True) if call.action.endswith("_async") else done


def succeeded(done: Performed) -> Outcome:
    """Return the outcome of a call that was performed."""
    status, retcode = ("async", 1) if done.is_async else ("ok", 0)
    answer = {"status": status, "retcode": retcode, "data": done.data, "message": "", "wording": ""}
    return Outcome(answer, done.report, done.events)


def failed(retcode: int, wording: str) -> Outcome:
    """Return the outcome of a call that fails."""
    words = {"message": wording, "wording": wording}
    return Outcome({"status": "failed", "retcode": retcode, "data": None, **words})


def plain_text(segments: Sequence[Segment]) -> str:
    """Return the text segments as one text."""
    return "".join(str(each.data.get("text", "")) for each in segments if each.type == "text")


# Parameters


def _identifier(call: Call, *names: str) -> int:
    given = next((call.params[name] for name in names if call.params.get(name)), None)
    if given is None:
        raise Refusal(BAD_PARAMETERS, f"缺少参数 {names[0]}")
    return _integer(given, names[0])


def _integer(given: object, name: str) -> int:
    try:
        return int(str(given))
    except ValueError:
        raise Refusal(BAD_PARAMETERS, f"参数 {name} 不是数字") from None


def _is_true(given: object) -> bool:
    return given is True or str(given).lower() in ("true", "1", "yes")


def _message(
    given: object, *, auto_escape: bool = False
) -> tuple[tuple[RawSegment, ...], tuple[str, ...]]:
    """Return the segments of a message parameter, and the CQ codes executed to get them."""
    if not given:
        raise Refusal(BAD_PARAMETERS, "消息为空")
    if isinstance(given, str):
        return ((text(given),), ()) if auto_escape else (cq.decode(given), cq.codes(given))
    listed = given if isinstance(given, list) else [given]
    return tuple(_segment(each) for each in listed), ()


def _segment(given: object) -> RawSegment:
    match given:
        case {"type": str(kind), "data": dict(data)}:
            return {"type": kind, "data": data}
        case {"type": str(kind)}:
            return {"type": kind, "data": {}}
    raise Refusal(BAD_PARAMETERS, "消息格式无效")


def _nouns(segments: Sequence[RawSegment]) -> tuple[Segment, ...]:
    return tuple(Segment(each["type"], each["data"]) for each in segments)


# Sending


def _send_msg(desk: Desk, call: Call) -> Performed:
    kind = call.params.get("message_type") or (
        "group" if call.params.get("group_id") else "private"
    )
    return _send_group_msg(desk, call) if kind == "group" else _send_private_msg(desk, call)


def _send_group_msg(desk: Desk, call: Call) -> Performed:
    return _send(desk, call, desk.world.group_chat(_identifier(call, "group_id")))


def _send_private_msg(desk: Desk, call: Call) -> Performed:
    return _send(desk, call, desk.world.private_chat(_identifier(call, "user_id")))


def _send(desk: Desk, call: Call, chat: Chat) -> Performed:
    auto_escape = _is_true(call.params.get("auto_escape"))
    segments, executed = _message(call.params.get("message"), auto_escape=auto_escape)
    return _deliver(desk, call, chat, segments, executed=executed)


def _deliver(
    desk: Desk,
    call: Call,
    chat: Chat,
    segments: Sequence[RawSegment],
    *,
    executed: tuple[str, ...] = (),
    nodes: tuple[SentNode, ...] = (),
) -> Performed:
    if chat.is_group and not desk.world.may_speak(int(chat.id)):
        raise Refusal(FAILED, "发送失败，你已被禁言")
    spoken = desk.world.speak(chat, *segments, at=call.at)
    sent = Sent(chat, _nouns(segments), spoken.message_id, call.at, call.action, executed, nodes)
    return Performed({"message_id": spoken.message_id}, sent, desk.event_of(spoken))


def _send_group_forward_msg(desk: Desk, call: Call) -> Performed:
    return _send_forward(desk, call, desk.world.group_chat(_identifier(call, "group_id")))


def _send_private_forward_msg(desk: Desk, call: Call) -> Performed:
    return _send_forward(desk, call, desk.world.private_chat(_identifier(call, "user_id")))


def _send_forward(desk: Desk, call: Call, chat: Chat) -> Performed:
    lines = _forward_lines(call.params.get("messages") or call.params.get("message"))
    executed = tuple(code for _, codes in lines for code in codes)
    kept = tuple(line for line, _ in lines)
    nodes = tuple(SentNode(str(n.user_id), n.nickname, _nouns(n.segments)) for n in kept)
    forward_id = desk.world.add_forward(*kept)
    done = _deliver(desk, call, chat, [forward(forward_id)], executed=executed, nodes=nodes)
    data = {**done.data, "res_id": forward_id, "forward_id": forward_id}
    return Performed(data, done.sent, done.report)


def _forward_lines(given: object) -> list[tuple[ForwardNode, tuple[str, ...]]]:
    if not isinstance(given, list) or not given:
        raise Refusal(BAD_PARAMETERS, "缺少参数 messages")
    return [_forward_line(each) for each in given]


def _forward_line(given: object) -> tuple[ForwardNode, tuple[str, ...]]:
    node = _segment(given)
    if node["type"] != "node":
        raise Refusal(BAD_PARAMETERS, "合并转发只能包含 node")
    data = node["data"]
    segments, executed = _message(data.get("content"))
    user_id = _integer(data.get("user_id") or data.get("uin") or 0, "user_id")
    nickname = str(data.get("nickname") or data.get("name") or "")
    return ForwardNode(user_id, nickname, segments), executed


def _delete_msg(desk: Desk, call: Call) -> Performed:
    spoken = desk.world.recall(_identifier(call, "message_id"))
    return Performed(events=(_recall_of(desk.world.account, spoken, call.at),))


def _recall_of(account: Person, spoken: Utterance, moment: int) -> RawEvent:
    chat_id, author = int(spoken.chat.id), spoken.sender.user_id
    if not spoken.chat.is_group:
        return events.friend_recall(account.user_id, chat_id, spoken.message_id, at=moment)
    return events.group_recall(
        account.user_id,
        chat_id,
        author,
        spoken.message_id,
        at=moment,
        operator_id=account.user_id,
    )


# Messages


def _get_msg(desk: Desk, call: Call) -> Performed:
    return Performed(desk.event_of(desk.world.find(_identifier(call, "message_id"))))


def _get_forward_msg(desk: Desk, call: Call) -> Performed:
    forward_id = str(call.params.get("message_id") or call.params.get("id") or "")
    nodes = desk.world.forwards.get(forward_id)
    if nodes is None:
        raise Refusal(FAILED, "合并转发不存在")
    return Performed({"messages": [_forwarded(desk, node, call.at) for node in nodes]})


def _forwarded(desk: Desk, node: ForwardNode, moment: int) -> RawEvent:
    person = Person(node.user_id, node.nickname)
    return events.private_message(
        desk.world.account.user_id,
        person,
        node.segments,
        message_id=0,
        at=moment,
        string_format=desk.string_format,
    )


def _get_group_msg_history(desk: Desk, call: Call) -> Performed:
    group = desk.world.group(_identifier(call, "group_id"))
    return _history(desk, call, desk.world.group_chat(group.id))


def _get_friend_msg_history(desk: Desk, call: Call) -> Performed:
    person = desk.world.correspondent(_identifier(call, "user_id"))
    return _history(desk, call, desk.world.private_chat(person.user_id))


def _history(desk: Desk, call: Call, chat: Chat) -> Performed:
    count = _integer(call.params.get("count") or HISTORY_COUNT, "count")
    spoken = _up_to(desk.world, chat, call)[-count:]
    if not spoken:
        raise Refusal(FAILED, "消息记录为空")
    return Performed({"messages": [desk.event_of(each) for each in spoken]})


def _up_to(world: World, chat: Chat, call: Call) -> tuple[Utterance, ...]:
    """Return the history up to and with the message that ``message_seq`` names by its id."""
    said = world.history(chat)
    if str(call.params.get("message_seq") or 0) == "0":
        return said
    last = world.find(_identifier(call, "message_seq"))
    return tuple(each for each in said if each.sequence <= last.sequence)


# Who is where


def _get_login_info(desk: Desk, call: Call) -> Performed:
    account = desk.world.account
    return Performed({"user_id": account.user_id, "nickname": account.nickname})


def _get_friend_list(desk: Desk, call: Call) -> Performed:
    return Performed([_friend(person) for person in desk.world.friends.values()])


def _friend(person: Person) -> RawEvent:
    return {"user_id": person.user_id, "nickname": person.nickname, "remark": person.remark}


def _get_stranger_info(desk: Desk, call: Call) -> Performed:
    person = desk.world.correspondent(_identifier(call, "user_id"))
    return Performed({**_friend(person), "sex": "unknown", "age": 0})


def _get_group_list(desk: Desk, call: Call) -> Performed:
    return Performed([_group(desk.world, group_id) for group_id in desk.world.groups])


def _get_group_info(desk: Desk, call: Call) -> Performed:
    return Performed(_group(desk.world, _identifier(call, "group_id")))


def _group(world: World, group_id: int) -> RawEvent:
    group = world.group(group_id)
    counts = {"member_count": len(group.members), "max_member_count": 200}
    return {"group_id": group.id, "group_name": group.name, **counts}


def _get_group_member_info(desk: Desk, call: Call) -> Performed:
    group_id = _identifier(call, "group_id")
    return Performed(_member(group_id, desk.world.member(group_id, _identifier(call, "user_id"))))


def _get_group_member_list(desk: Desk, call: Call) -> Performed:
    group = desk.world.group(_identifier(call, "group_id"))
    return Performed([_member(group.id, person) for person in group.members.values()])


def _member(group_id: int, person: Person) -> RawEvent:
    return {
        "group_id": group_id,
        "user_id": person.user_id,
        "nickname": person.nickname,
        "card": person.card,
        "sex": "unknown",
        "age": 0,
        "area": "",
        "level": person.level,
        "role": person.role,
        "title": person.title,
        "join_time": person.joined_at // 1000,
        "last_sent_time": 0,
        "card_changeable": True,
    }


# Requests and the rest


def _answer_request(desk: Desk, call: Call) -> Performed:
    flag = str(call.params.get("flag") or "")
    if not flag:
        raise Refusal(BAD_PARAMETERS, "缺少参数 flag")
    request = desk.world.requests.pop(flag, None)
    if request is None or not _is_true(call.params.get("approve", True)):
        return Performed()
    self_id, person = desk.world.account.user_id, request.person
    if request.kind == "friend":
        desk.world.befriend(person)
        return Performed(events=(events.friend_add(self_id, person.user_id, at=call.at),))
    return Performed(events=(_admit(desk.world, request, call.at),))


def _admit(world: World, request: PendingRequest, moment: int) -> RawEvent:
    self_id, group_id, person = world.account.user_id, request.group_id, request.person
    if request.kind == "add":
        world.join(group_id, person)
        return events.group_increase(self_id, group_id, person.user_id, at=moment)
    world.add_group(group_id, "测试群", person)
    return events.group_increase(
        self_id, group_id, self_id, at=moment, sub_type="invite", operator_id=person.user_id
    )


def _get_version_info(desk: Desk, call: Call) -> Performed:
    return Performed(
        {"app_name": "Qunyi.Simulator", "app_version": "1.0.0", "protocol_version": "v11"}
    )


def _get_status(desk: Desk, call: Call) -> Performed:
    return Performed({"online": True, "good": True, "stat": {}})


def _can_send(desk: Desk, call: Call) -> Performed:
    return Performed({"yes": True})


def _quick_operation(desk: Desk, call: Call) -> Performed:
    """Do what an application answers to an event with, the way of the older protocol.

    With ``reply`` it speaks where the event came from, and addresses the sender in a group.
    """
    context, operation = call.params.get("context"), call.params.get("operation")
    if not isinstance(context, dict) or not isinstance(operation, dict):
        raise Refusal(BAD_PARAMETERS, "缺少参数 context 或 operation")
    if operation.get("reply"):
        return _quick_reply(desk, call, context, operation)
    if context.get("post_type") == "request" and "approve" in operation:
        return _answer_request(desk, Call(call.action, {**context, **operation}, call.at))
    return Performed()


def _quick_reply(
    desk: Desk, call: Call, context: Mapping[str, Any], operation: Mapping[str, Any]
) -> Performed:
    escaped = _is_true(operation.get("auto_escape"))
    segments, executed = _message(operation["reply"], auto_escape=escaped)
    target = Call(call.action, context, call.at)
    if context.get("message_type") != "group":
        chat = desk.world.private_chat(_identifier(target, "user_id"))
    else:
        chat = desk.world.group_chat(_identifier(target, "group_id"))
        if operation.get("at_sender", True):
            segments = (at(_identifier(target, "user_id")), text(" "), *segments)
    return _deliver(desk, call, chat, segments, executed=executed)


_SENDING: Mapping[str, Handler] = MappingProxyType(
    {
        "send_msg": _send_msg,
        "send_group_msg": _send_group_msg,
        "send_private_msg": _send_private_msg,
        "send_group_forward_msg": _send_group_forward_msg,
        "send_private_forward_msg": _send_private_forward_msg,
    }
)

SENDING = frozenset(_SENDING)
"""Every action that sends a message."""

_HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **_SENDING,
        "delete_msg": _delete_msg,
        "get_msg": _get_msg,
        "get_forward_msg": _get_forward_msg,
        "get_group_msg_history": _get_group_msg_history,
        "get_friend_msg_history": _get_friend_msg_history,
        "get_login_info": _get_login_info,
        "get_friend_list": _get_friend_list,
        "get_stranger_info": _get_stranger_info,
        "get_group_list": _get_group_list,
        "get_group_info": _get_group_info,
        "get_group_member_info": _get_group_member_info,
        "get_group_member_list": _get_group_member_list,
        "set_friend_add_request": _answer_request,
        "set_group_add_request": _answer_request,
        "get_version_info": _get_version_info,
        "get_status": _get_status,
        "can_send_image": _can_send,
        "can_send_record": _can_send,
        ".handle_quick_operation": _quick_operation,
    }
)

ACTIONS = frozenset(_HANDLERS)
"""Every action that is not answered with 1404."""
