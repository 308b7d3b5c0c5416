"""The view: the week on a terminal, or as plain lines where there is none.

Chinese first, then English where a reader without Chinese would be lost. Nothing that people or a
model wrote is read as markup: it enters as ``Text`` alone, on one line.
"""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from bot.clock import local_time
from bot.demo.happenings import (
    Asked,
    Compressed,
    DayBegan,
    Happening,
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
from bot.demo.sample import BOT_NAME, ZONE
from bot.model import Chat, Scope
from bot.text import clipped, display_name, single_line

WEEKDAYS = "一二三四五六日"

SAID_CHARS = 120
SENT_CHARS = 240
PROOF_CHARS = 60
QUOTE_CHARS = 24

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
        console: where to.
        is_recorded: whether the model's answers are recorded, which is said at start and end.
    """

    def __init__(self, console: Console, *, is_recorded: bool) -> None:
        self._console = console
        self._is_recorded = is_recorded

    def open(self, people: int, messages: int) -> None:
        """Say what is about to be seen."""
        self._show(
            Panel(
                Group(
                    Text(
                        f"一个 {people} 人群的一周，{messages} 条消息，"
                        "走真实的 WebSocket，用虚拟时钟。"
                    ),
                    Text(
                        f"A week of a group of {people}: {messages} messages over the real socket,"
                        " on a virtual clock.",
                        style="dim",
                    ),
                    *self._frankly(),
                ),
                title="群忆 Qunyi · demo",
                border_style="bold",
            )
        )

    def close(self) -> None:
        """Say once more what was real and what was not."""
        self._show(Panel(Group(*self._frankly()), border_style="bold"))

    def _frankly(self) -> Iterable[RenderableType]:
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
                self._show(Rule(_day(at), align="left"))
            case Said():
                self._said(happening)
            case Sent():
                self._sent(happening)
            case Recalled():
                self._recalled(happening)
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
            case WeekEnded():
                self._ended(happening)
            case Asked():
                pass

    def _show(self, what: RenderableType) -> None:
        self._console.print(what)

    # The chat

    def _said(self, said: Said) -> None:
        line = _who(said.name, said.sender_id)
        line.append("：")
        if said.quoted:
            line.append(f"「{_short(said.quoted, QUOTE_CHARS)}」", style="dim")
        line.append(_short(said.text, SAID_CHARS))
        self._show(_row(said.at, said.chat, line))

    def _sent(self, sent: Sent) -> None:
        lines = "\n".join(_short(line, SENT_CHARS) for line in sent.text.splitlines())
        self._show(_row(sent.at, sent.chat, Text(f"{BOT_NAME}(BOT)：{lines}", style="bold")))

    def _recalled(self, gone: Recalled) -> None:
        words = f"{_clock(gone.at)} × {gone.by} 撤回了 {gone.sender_id} 的一条消息 recalled"
        self._show(Text(words, style="red"))
        for text in gone.fallen:
            fallen = f"      随之消失的记忆 forgotten with it：{_short(text, PROOF_CHARS)}"
            self._show(Text(fallen, style="red"))

    def _renamed(self, renamed: Renamed) -> None:
        former, card = (display_name(name, "—") for name in (renamed.former, renamed.card))
        words = f"{renamed.user_id} 的群名片：{former} → {card}"
        self._show(Text(f"{_clock(renamed.at)} * {words}（还是同一个人 same person）", style="dim"))

    # Memory

    def _reflected(self, done: Reflected) -> None:
        title = (
            f"{TASKS[done.task]} · 触发：{TRIGGERS.get(done.trigger, done.trigger)}"
            f" · 读 {done.messages} 条"
        )
        if done.is_empty:
            self._show(Text(f"      {title} → 没有值得记的 nothing to keep", style="dim"))
            return
        title += f" → {done.changes} 处更新，拒绝 {len(done.refused)} 项"
        lines: list[RenderableType] = []
        for entry in done.added:
            lines += _entry_lines("+", entry, "green")
        for entry in done.proven:
            lines += _entry_lines("=", entry, "green")
        for entry in done.superseded:
            lines.append(_superseded(entry))
        for scope, text in done.summaries:
            lines.append(Text(f"≡ 概况 summary {_whose(scope)}：{single_line(text)}"))
        lines += [_refusal(refused) for refused in done.refused]
        self._block(title, lines, "cyan")

    def _compressed(self, done: Compressed) -> None:
        title = (
            f"记忆压缩 compression · {_whose(done.scope)} · "
            f"{len(done.sources)} 条近事 → {len(done.made)} 条长期记忆"
        )
        lines: list[RenderableType] = [
            Text(f"- {entry.date} {single_line(entry.text)}", style="dim") for entry in done.sources
        ]
        lines += [
            Text(f"+ #{entry.label} {entry.date} {single_line(entry.text)}", style="green")
            for entry in done.made
        ]
        self._block(title, lines, "magenta")

    def _put_off(self, failed: PutOff) -> None:
        title = f"{TASKS[failed.task]} · 没有采用，什么也没改 refused, nothing changed"
        words = Text(f"× {single_line(failed.error)}", style="red")
        again = Text(f"  {_clock(failed.again_at)} 再试 tried again", style="dim")
        self._block(title, [words, again], "red")

    def _snapshot(self, made: SnapshotMade) -> None:
        title = f"快照 snapshot · {_whose(made.scope)} → {_where(made.chat)}里的提示词"
        text = Text("\n".join(single_line(line) for line in made.text.splitlines()))
        self._block(title, [text], "blue")

    def _block(self, title: str, lines: Sequence[RenderableType], style: str) -> None:
        panel = Panel(
            Group(*lines),
            title=Text(title),
            title_align="left",
            border_style=style,
            box=box.ROUNDED,
        )
        self._show(Padding(panel, (0, 0, 0, 6)))

    # The end

    def _ended(self, ended: WeekEnded) -> None:
        self._show(
            Rule(
                "一周结束：记住了谁的什么，哪句话为证 · "
                "what is remembered, and which message proves it"
            )
        )
        self._show(
            Text(
                f"{ended.messages} 条消息，问了模型 {ended.requests} 次，"
                f"记住 {len(ended.entries)} 条。"
            )
        )
        scopes = {entry.scope for entry in ended.entries}
        for scope in sorted(scopes, key=lambda one: (one.kind, one.id)):
            self._show(_table(scope, [e for e in ended.entries if e.scope == scope], ended))


def _table(scope: Scope, entries: Sequence[Remembered], ended: WeekEnded) -> RenderableType:
    table = Table(
        title=Text(_whose(scope), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        expand=True,
        pad_edge=False,
    )
    table.add_column("记忆 entry", ratio=1, overflow="fold")
    table.add_column("为证的消息 evidence", ratio=1, overflow="fold")
    for held, origin, text in ended.summaries:
        if held == scope:
            place = "" if origin.is_group else "（私聊 private）"
            table.add_row(
                Text(f"概况{place} {single_line(text)}"), Text("见各条 as below", style="dim")
            )
    for entry in entries:
        table.add_row(_entry_cell(entry), _proof_cell(entry.proofs))
    return table


def _entry_cell(entry: Remembered) -> Text:
    cell = Text(f"#{entry.label} ", style="dim")
    place = "" if entry.origin.is_group else "·私聊 private"
    cell.append(f"{DOCUMENTS[entry.document]}{place} ", style="cyan")
    cell.append(f"{entry.date} " if entry.date else "")
    cell.append(single_line(entry.text))
    return cell


def _proof_cell(proofs: Sequence[Proof]) -> Text:
    return Text("\n").join(_proof(proof) for proof in proofs)


def _entry_lines(sign: str, entry: Remembered, style: str) -> list[RenderableType]:
    head = Text(f"{sign} #{entry.label} {_whose(entry.scope)} ", style=style)
    head.append(f"{DOCUMENTS[entry.document]} ", style="cyan")
    head.append(single_line(entry.text))
    return [head, *(Text("    ← ").append_text(_proof(proof)) for proof in entry.proofs)]


def _superseded(entry: Remembered) -> Text:
    words = f"~ #{entry.label} {_whose(entry.scope)} 不再成立 superseded："
    return Text(words, style="yellow").append(single_line(entry.text), style="strike")


def _refusal(refused: Refused) -> Text:
    words = Text("× 拒绝 refused ", style="red")
    words.append(_short(refused.text or refused.place, PROOF_CHARS))
    return words.append(f" —— {refused.reason}", style="red")


def _proof(proof: Proof) -> Text:
    at = local_time(proof.at, ZONE).strftime("%m-%d %H:%M")
    text = Text(f"{at} ", style="dim")
    text.append_text(_who(proof.name, int(proof.sender_id)))
    return text.append(f"：{_short(proof.text, PROOF_CHARS)}")


def _who(name: str, user_id: int) -> Text:
    who = f"{display_name(name, str(user_id))}({user_id})"
    return Text.assemble((who, STYLES.get(user_id, "")))


def _row(at: int, chat: Chat, said: Text) -> RenderableType:
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(width=5, style="dim")
    row.add_column(width=4)
    row.add_column(ratio=1, overflow="fold")
    row.add_row(_clock(at), Text(_where(chat), style="" if chat.is_group else "reverse"), said)
    return row


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
