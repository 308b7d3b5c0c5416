"""The models: each configured route is really asked for a few tokens."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping

from bot.checks.finding import Finding, good, warning
from bot.clock import Clock
from bot.errors import ModelAnswerInvalid, ModelError, ModelNotConfigured, ModelUnavailable
from bot.guidance import NO_MODEL
from bot.llm.openai_model import OpenAIModel, Patience
from bot.llm.protocol import Purpose
from bot.llm.routing import SLOTS, Route, Routes, Slot
from bot.model import Usage

PATIENCE = Patience(connect_seconds=5, reply_seconds=30)

_CAUSES: Mapping[int, str] = {
    0: "服务商拒绝了：检查 {key}、余额和 {model}",
    401: "密钥被拒绝（401）：检查 {key}，重新复制",
    402: "账户没有余额（402）：请充值",
    403: "密钥无权使用这个模型（403）：检查 {key} 和 {model}",
    404: "没有这个模型，或地址不对（404）：检查 {model} 和 {url}（多数以 /v1 结尾）",
    405: "地址不对（405）：检查 {url}（多数以 /v1 结尾）",
    429: "请求过多，或额度用完（429）：稍后再试，或充值",
}
"""What an HTTP status means, with the variables to look at."""


async def model_findings(
    routes: Routes, clock: Clock, patience: Patience = PATIENCE
) -> AsyncIterator[Finding]:
    """Yield what is missing, and for each route how fast it answered or why it did not.

    The requests are few tokens each and appear in no usage row: nothing is written.
    """
    for finding in _missing(routes):
        yield finding
    users = _users(routes)
    model = OpenAIModel(routes, clock=clock, record=_forget, patience=patience)
    probes = [_probe(model, routes, route, slots) for route, slots in users.items()]
    try:
        for finding in await asyncio.gather(*probes):
            yield finding
    finally:
        await model.close()


async def _forget(usage: Usage) -> None:
    """Keep no row: the database belongs to the bot that may be running."""


def _missing(routes: Routes) -> Iterator[Finding]:
    if not routes.is_configured("chat"):
        yield warning(f"{NO_MODEL} ({_lack(routes, 'CHAT')})")
    for slot in dict.fromkeys(SLOTS.values()):
        if slot != "CHAT" and routes.config.slot(slot).model and (lack := _lack(routes, slot)):
            yield warning(
                f"{slot}_MODEL 用不了：缺少密钥或地址 | {slot}_MODEL is not usable: {lack}."
            )
    if routes.is_configured("embed"):
        yield good(
            "EMBEDDING_MODEL 已设置；它不聊天，这里不测试"
            " | EMBEDDING_MODEL is set; it does not chat and is not tried here."
        )


def _lack(routes: Routes, slot: Slot) -> str:
    try:
        routes.candidates(_purpose(slot))
    except ModelNotConfigured as error:
        return str(error)
    return ""


def _purpose(slot: Slot) -> Purpose:
    return next(purpose for purpose, its_slot in SLOTS.items() if its_slot == slot)


def _users(routes: Routes) -> dict[Route, list[Slot]]:
    """Return every route that chats with the slots that use it."""
    users: dict[Route, list[Slot]] = {}
    for purpose, slot in SLOTS.items():
        if slot == "EMBEDDING" or not routes.is_configured(purpose):
            continue
        for route in routes.candidates(purpose):
            slots = users.setdefault(route, [])
            slots += [] if slot in slots else [slot]
    return users


async def _probe(model: OpenAIModel, routes: Routes, route: Route, slots: list[Slot]) -> Finding:
    users = "/".join(slots)
    try:
        probe = await model.probe(route)
    except ModelError as error:
        cause = _cause(error).format_map(_names(routes, slots[0]))
        return warning(f"模型 {route}（{users}）：{cause} | {error}")
    return good(
        f"模型 {route}（{users}）：{probe.duration_ms} 毫秒后回答 | It answers, in milliseconds."
    )


def _cause(error: ModelError) -> str:
    if isinstance(error, ModelAnswerInvalid):
        return "回答不是补全接口的格式：检查 {url}（多数以 /v1 结尾）和 {model}"
    if not isinstance(error, ModelUnavailable):
        return "服务商拒绝了测试请求，实际聊天也可能被拒绝：换一个模型试试"
    if error.status is None:
        return "连不上，或没有及时回答：检查 {url}、网络和代理"
    if error.status >= 500:
        return f"服务商出错（{error.status}）：稍后再试"
    return _CAUSES.get(error.status, f"服务商拒绝了（{error.status}）：检查 {{url}} 和 {{model}}")


def _names(routes: Routes, slot: Slot) -> dict[str, str]:
    """Return the variables that a slot's route came from."""
    own = routes.config.slot(slot)
    return {
        "key": f"{slot}_API_KEY" if own.api_key else "OPENAI_API_KEY",
        "url": f"{slot}_BASE_URL" if own.base_url else "OPENAI_BASE_URL",
        "model": f"{slot}_MODEL" if own.model else "CHAT_MODEL",
    }
