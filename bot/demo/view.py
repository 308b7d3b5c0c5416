"""The view: the week on a terminal, or as plain lines where there is none.

Chinese first, then English where a reader without Chinese would be lost. Nothing that people or a
model wrote is read as markup: it enters as ``Text`` alone, on one line.
"""

from collections.abc import Iterator, Sequence

from rich.text import Text

from bot.clock import local_time
from bot.demo.happenings import (
    Asked,
    Compressed,
    DayBegan,
    Forgotten,
    Happening,
    PackShown,
    Proof,
    PutOff,
    Recalled,
    Reflected,
    Refused,
    Remembered,
    Renamed,
    Said,
    Sent,
    SnapshotMade,
    WeekEnded,
)
from bot.demo.page import Page
from bot.demo.paragraph import Paragraph
from bot.demo.sample import BOT_NAME, ZONE
from bot.model import Chat, Scope
from bot.text import clipped, display_name, single_line

WEEKDAYS = "一二三四五六日"

SAID_CHARS = 160
SENT_CHARS = 240
PROOF_CHARS = 60
QUOTE_CHARS = 24

MARGIN = 11
"""Cells before what is said: the clock and the chat."""
HANG = MARGIN + 2
"""Before what of it did not fit."""
PROOF_MARGIN = 4
BREAK = " ⏎ "
"""Stands for a line break in what somebody said."""

TASKS = {
    "group": "群记忆",
    "member-batch": "成员记忆",
    "private-owner": "私聊记忆",
    "compress": "记忆压缩",
}
TRIGGERS = {
    "idle": "安静了一阵 idle",
    "count": "攒够了条数 count",
    "max-wait": "等得够久 max-wait",
    "backlog": "接着上一批 backlog",
}
DOCUMENTS = {
    "profile": "档案",
    "pattern": "习惯",
    "daily": "近事",
    "memory": "长期",
    "note": "便签",
}
STYLES = {30001: "cyan", 30002: "blue", 30003: "magenta", 30004: "green", 30005: "yellow"}


class View:
    """Shows happenings.

    Args:
        page: where to.
        is_recorded: whether the model's answers are recorded, which is said at start and end.
    """

    def __init__(self, page: Page, *, is_recorded: bool) -> None:
        self._page = page
        self._is_recorded = is_recorded

    def open(self, people: int, messages: int) -> None:
        """Say what is about to be seen."""
        chinese = f"一个 {people} 人群的一周，{messages} 条消息，走真实的 WebSocket，用虚拟时钟。"
        english = (
            f"A week of a group of {people}: {messages} messages over the real socket,"
            " on a virtual clock."
        )
        words = [Text(chinese), Text(english, style="dim"), *self._frankly()]
        self._page.block(
            ["群忆 Qunyi · demo"], [Paragraph(one, 0) for one in words], "bold", inset=0
        )

    def close(self) -> None:
        """Say once more what was real and what was not."""
        words = [Paragraph(one, 0) for one in self._frankly()]
        self._page.block(["群忆 Qunyi · demo"], words, "bold", inset=0)

    def _frankly(self) -> Iterator[Text]:
        if not self._is_recorded:
            yield Text("人和消息是编写的样本；回答来自你配置的模型。", style="bold")
            yield Text(
                "The people and messages are a sample; the configured model answers.", style="dim"
            )
            return
        yield Text(
            "请注意：模型的回答是录制的，没有调用任何模型；触发、检查、拒绝、压缩和存储都是真的。",
            style="bold",
        )
        yield Text(
            "Note: the model's answers are recorded, no model is called. Triggers, checks,"
            " refusals, compression and storage are the real program.",
            style="dim",
        )

    def show(self, happening: Happening) -> None:
        """Show what happened."""
        match happening:
            case DayBegan(at):
                self._page.rule(_day(at))
            case Said():
                self._said(happening)
            case Sent():
                self._sent(happening)
            case Recalled():
                self._recalled(happening)
            case Forgotten():
                self._forgotten(happening)
            case Renamed():
                self._renamed(happening)
            case Reflected():
                self._reflected(happening)
            case Compressed():
                self._compressed(happening)
            case PutOff():
                self._put_off(happening)
            case SnapshotMade():
                self._snapshot(happening)
            case PackShown():
                self._pack(happening)
            case WeekEnded():
                self._ended(happening)
            case Asked():
                pass

    def _show(self, text: Text, hang: int) -> None:
        self._page.paragraph(Paragraph(text, hang))

    # The chat

    def _said(self, said: Said) -> None:
        line = _who(said.name, said.sender_id)
        line.append("：")
        if said.quoted:
            line.append(f"「{_short(said.quoted, QUOTE_CHARS)}」", style="dim")
        line.append(_short(BREAK.join(said.text.splitlines()), SAID_CHARS))
        self._show(_opening(said.at, said.chat).append_text(line), HANG)

    def _sent(self, sent: Sent) -> None:
        first, *rest = [_short(line, SENT_CHARS) for line in sent.text.splitlines()] or [""]
        line = Text(f"{BOT_NAME}(BOT)：{first}", style="bold")
        self._show(_opening(sent.at, sent.chat).append_text(line), HANG)
        for text in rest:
            self._show(Text(" " * MARGIN).append(text, style="bold"), HANG)

    def _recalled(self, gone: Recalled) -> None:
        words = f"{_clock(gone.at)} × {gone.by} 撤回了 {gone.sender_id} 的一条消息 recalled"
        self._show(Text(words, style="red"), HANG)
        self._fallen(gone.fallen, "随之消失的记忆 forgotten with it")

    def _forgotten(self, gone: Forgotten) -> None:
        self._fallen(gone.fallen, f"{gone.by} 要忘的记忆没有了 forgotten on request")

    def _fallen(self, texts: Sequence[str], why: str) -> None:
        for text in texts:
            words = f"{' ' * MARGIN}× {why}：{_short(text, PROOF_CHARS)}"
            self._show(Text(words, style="red"), HANG)

    def _renamed(self, renamed: Renamed) -> None:
        former, card = (display_name(name, "—") for name in (renamed.former, renamed.card))
        words = f"{renamed.user_id} 的群名片：{former} → {card}"
        line = f"{_clock(renamed.at)} * {words}（还是同一个人 same person）"
        self._show(Text(line, style="dim"), HANG)

    # Memory

    def _reflected(self, done: Reflected) -> None:
        title = [
            TASKS[done.task],
            f"触发：{TRIGGERS.get(done.trigger, done.trigger)}",
            f"读 {done.messages} 条",
        ]
        if done.is_empty:
            words = f"      {' · '.join(title)} → 没有值得记的 nothing to keep"
            self._show(Text(words, style="dim"), HANG)
            return
        title[-1] += f" → {done.changes} 处更新，拒绝 {len(done.refused)} 项"
        self._page.block(title, list(_changes(done)), "cyan")

    def _compressed(self, done: Compressed) -> None:
        title = [
            "记忆压缩 compression",
            _whose(done.scope),
            f"{len(done.sources)} 条近事 → {len(done.made)} 条长期记忆",
        ]
        lines = [
            Text(f"- {_dated(entry)}{single_line(entry.text)}", style="dim")
            for entry in done.sources
        ]
        lines += [
            Text(f"+ #{entry.label} {_dated(entry)}{single_line(entry.text)}", style="green")
            for entry in done.made
        ]
        self._page.block(title, [Paragraph(line) for line in lines], "magenta")

    def _put_off(self, failed: PutOff) -> None:
        title = [TASKS[failed.task], "没有采用，什么也没改 refused, nothing changed"]
        words = Text(f"× {single_line(failed.error)}", style="red")
        again = Text(f"  {_clock(failed.again_at)} 再试 tried again", style="dim")
        self._page.block(title, [Paragraph(words), Paragraph(again)], "red")

    def _snapshot(self, made: SnapshotMade) -> None:
        title = ["快照 snapshot", f"{_whose(made.scope)} → {_where(made.chat)}里的提示词"]
        self._page.block(title, _as_prompted(made.text), "blue")

    def _pack(self, shown: PackShown) -> None:
        title = [f"回忆包 recall pack → {_where(shown.chat)}里的提示词", "快照里还没有的"]
        self._page.block(title, _as_prompted(shown.text), "yellow")

    # The end

    def _ended(self, ended: WeekEnded) -> None:
        self._page.rule("一周结束 the week is over")
        counts = (
            f"{ended.messages} 条消息，问了模型 {ended.requests} 次，"
            f"记住 {len(ended.entries)} 条。下面是：记住了谁的什么，哪句话为证。"
        )
        self._show(Text(counts), 0)
        english = "Below: what is remembered of whom, and which message proves it."
        self._show(Text(english, style="dim"), 0)
        scopes = {entry.scope for entry in ended.entries}
        for scope in sorted(scopes, key=lambda one: (one.kind, one.id)):
            entries = [entry for entry in ended.entries if entry.scope == scope]
            body = [*_summaries(scope, ended), *_evidence(entries)]
            self._page.block([_whose(scope), f"记住 {len(entries)} 条"], body, "", inset=0)


def _changes(done: Reflected) -> Iterator[Paragraph]:
    for sign, entries in (("+", done.added), ("=", done.proven)):
        for entry in entries:
            head = Text(f"{sign} #{entry.label} {_whose(entry.scope)} ", style="green")
            head.append(f"{DOCUMENTS[entry.document]} ", style="cyan")
            yield Paragraph(head.append(single_line(entry.text)))
            yield from map(_proof, entry.proofs)
    yield from map(_superseded, done.superseded)
    for scope, text in done.summaries:
        yield Paragraph(Text(f"≡ 概况 summary {_whose(scope)}：{single_line(text)}"))
    yield from map(_refusal, done.refused)


def _superseded(entry: Remembered) -> Paragraph:
    words = f"~ #{entry.label} {_whose(entry.scope)} 不再成立 superseded："
    return Paragraph(Text(words, style="yellow").append(single_line(entry.text), style="strike"))


def _refusal(refused: Refused) -> Paragraph:
    words = Text("× 拒绝 refused ", style="red")
    words.append(_short(refused.text or refused.place, PROOF_CHARS))
    return Paragraph(words.append(f" —— {refused.reason}", style="red"))


def _as_prompted(text: str) -> list[Paragraph]:
    """Return the lines of a prompt; what does not fit is set off, since each entry is one line."""
    return [Paragraph(Text(single_line(line)), 4) for line in text.splitlines()]


def _summaries(scope: Scope, ended: WeekEnded) -> Iterator[Paragraph]:
    for held, origin, text in ended.summaries:
        if held == scope:
            head = Text(f"≡ 概况 summary{_private(origin)}：", style="cyan")
            yield Paragraph(head.append(single_line(text)))


def _evidence(entries: Sequence[Remembered]) -> Iterator[Paragraph]:
    for entry in entries:
        head = Text(f"#{entry.label} ", style="dim")
        head.append(f"{DOCUMENTS[entry.document]}{_private(entry.origin)} ", style="cyan")
        yield Paragraph(head.append(f"{_dated(entry)}{single_line(entry.text)}"))
        yield from map(_proof, entry.proofs)


def _private(origin: Chat) -> str:
    return "" if origin.is_group else "·私聊 private"


def _dated(entry: Remembered) -> str:
    # A text may begin with a date itself.
    return f"{entry.date} · " if entry.date else ""


def _proof(proof: Proof) -> Paragraph:
    at = local_time(proof.at, ZONE).strftime("%m-%d %H:%M")
    text = Text(" " * PROOF_MARGIN).append(f"← {at} ", style="dim")
    text.append_text(_who(proof.name, int(proof.sender_id)))
    return Paragraph(text.append(f"：{_short(proof.text, PROOF_CHARS)}"), PROOF_MARGIN + 2)


def _who(name: str, user_id: int) -> Text:
    who = f"{display_name(name, str(user_id))}({user_id})"
    return Text.assemble((who, STYLES.get(user_id, "")))


def _opening(at: int, chat: Chat) -> Text:
    text = Text(f"{_clock(at)} ", style="dim")
    # Four cells, and a space.
    where = "群   " if chat.is_group else "私聊 "
    return Text.assemble(text, where if chat.is_group else (where, "reverse"))


def _where(chat: Chat) -> str:
    return "群" if chat.is_group else "私聊"


def _whose(scope: Scope) -> str:
    return f"{'群' if scope.kind == 'group' else '成员'} {scope.id}"


def _short(text: str, max_chars: int) -> str:
    return clipped(single_line(text), max_chars)


def _clock(at: int) -> str:
    return local_time(at, ZONE).strftime("%H:%M")


def _day(at: int) -> str:
    local = local_time(at, ZONE)
    return f"{local:%Y-%m-%d} 星期{WEEKDAYS[local.weekday()]}"
