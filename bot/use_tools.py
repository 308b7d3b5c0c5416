"""Use tools: the calls of one answer, each within its rights, its time and its bounds.

See ``docs/tools.md``, "One use of a tool". Whatever goes wrong is told to the model; nothing of it
ends a turn but the end of the turn itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from loguru import logger

from bot.app import App
from bot.conversation.arguments import ArgumentsInvalid, plain_arguments, read_arguments
from bot.conversation.tools import Tool, ToolCall, ToolOutput, ToolResult
from bot.errors import ToolError
from bot.model import Chat, ToolUse
from bot.scene import Scene
from bot.store.messages import messages_by_rows
from bot.store.tool_history import RECALLED_RESULT
from bot.text import ELLIPSIS, clipped, many_lines
from bot.tools.surroundings import Surroundings

MAX_RESULT_CHARS = 4_000
"""Of a result so much is told."""

MAX_ERROR_CHARS = 500

LessonsFor = Callable[[App, Chat, str, str, str], Awaitable[str]]
"""Of a chat, a tool, its error and its arguments: what earlier failures taught, if anything."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A use of a tool and what came of it."""

    call: ToolCall
    result: ToolResult
    lessons: str = ""
    """What the model was told beside an error."""

    @property
    def use(self) -> ToolUse:
        """What is kept of it in the conversation."""
        text = f"{self.result.text}\n{self.lessons}" if self.lessons else self.result.text
        arguments = plain_arguments(self.call.arguments)
        return ToolUse(self.call.id, self.call.name, arguments, text, self.result.message_ids)


def offered(
    app: App, scene: Scene, tools: Iterable[Tool[Surroundings]]
) -> tuple[Tool[Surroundings], ...]:
    """Return those tools that whoever asks may use where they ask."""
    is_operator = app.is_operator(scene.question.sender_id)
    if scene.chat.is_group and not is_operator and not scene.settings.group_members_can_use_tools:
        return ()
    return tuple(tool for tool in tools if is_operator or not tool.operators_only)


async def no_lessons(app: App, chat: Chat, tool: str, error: str, arguments: str) -> str:
    """Return that nothing was learnt."""
    return ""


async def use_tools(
    surroundings: Surroundings,
    tools: Sequence[Tool[Surroundings]],
    calls: Iterable[ToolCall],
    lessons_for: LessonsFor = no_lessons,
) -> list[Attempt]:
    """Make some calls, one after another, and return what came of each.

    Args:
        surroundings: the turn; each call knows what those before it have shown.
        tools: those that were offered. No other is run, whatever a model calls.
        calls: what the model wants done.
        lessons_for: asked after a failure.
    """
    by_name = {tool.spec.name: tool for tool in tools}
    app = surroundings.app
    attempts: list[Attempt] = []
    for call in calls:
        result = _bounded(await _result(surroundings, by_name, call))
        surroundings = surroundings.showing([result])
        # At once: what is recalled while the next tool works stops the turn.
        app.floor.shows(surroundings.scene.question, surroundings.shown_rows)
        # And what was recalled while this one worked, after it had read it, is found here.
        result = await _standing(app, result)
        lessons = ""
        if result.is_error:
            chat = surroundings.scene.chat
            lessons = await lessons_for(app, chat, call.name, result.text, call.arguments)
        attempts.append(Attempt(call, result, lessons))
    return attempts


async def _result(
    surroundings: Surroundings, tools: Mapping[str, Tool[Surroundings]], call: ToolCall
) -> ToolResult:
    tool = tools.get(call.name)
    if tool is None:
        return ToolResult(f"没有名为 {call.name} 的工具", is_error=True)
    limit = asyncio.timeout(tool.timeout_seconds)
    try:
        arguments = read_arguments(call.arguments, tool.spec.parameters)
        async with limit:
            output = await tool.run(surroundings, arguments)
    except (ArgumentsInvalid, ToolError) as error:
        return ToolResult(clipped(str(error), MAX_ERROR_CHARS), is_error=True)
    except TimeoutError as error:
        if not limit.expired():
            return _broken(call, error)
        return ToolResult(f"工具超时：{tool.timeout_seconds:g} 秒内没有完成", is_error=True)
    except asyncio.CancelledError as error:
        # The turn was stopped; or the tool itself gave up, as some libraries do.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _broken(call, error)
    # What a tool does is anybody's code: this is where its errors end.
    except Exception as error:
        return _broken(call, error)
    if isinstance(output, ToolOutput):
        return ToolResult(output.text, message_ids=output.message_ids)
    return ToolResult(str(output))


async def _standing(app: App, result: ToolResult) -> ToolResult:
    """Return a result, without its text if it shows a message that is gone by now."""
    if not result.message_ids:
        return result
    found = await messages_by_rows(app.db, result.message_ids, kept=True)
    standing = {stored.row_id for stored in found}
    is_whole = standing.issuperset(result.message_ids)
    return result if is_whole else replace(result, text=RECALLED_RESULT)


def _broken(call: ToolCall, error: BaseException) -> ToolResult:
    logger.warning("the tool {} failed: {}", call.name, type(error).__name__)
    logger.opt(exception=error).debug("the tool {} failed", call.name)
    return ToolResult("工具出错", is_error=True)


def _bounded(result: ToolResult) -> ToolResult:
    """Return a result as it may be told: in whole characters, and not too long."""
    text = many_lines(result.text)
    if len(text) > MAX_RESULT_CHARS:
        told = f"{ELLIPSIS}\n（结果有 {len(text)} 字，只给出开头）"
        text = text[: MAX_RESULT_CHARS - len(told)] + told
    return replace(result, text=text or "（没有结果）")
