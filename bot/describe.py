"""Describe: what a picture of a message shows, in the words of the vision model.

See ``docs/tools.md``, "Images".
"""

import hashlib
from collections.abc import Awaitable, Callable

from loguru import logger

from bot.app import App
from bot.budget import budget_is_spent
from bot.conversation.outgoing import without_thinking
from bot.conversation.prompt_message import Image, PromptMessage
from bot.errors import ModelAnswerInvalid, NotFetched, SendError, ToolError
from bot.fetch import Picture
from bot.llm.protocol import ModelRequest
from bot.model import Chat, StoredMessage
from bot.onebot.pictures import PictureSegment, description_line, pictures, with_description
from bot.onebot.segments import read_segments
from bot.store.images import (
    Description,
    description_in_message,
    description_of_content,
    keep_description,
    standing_message,
)
from bot.store.messages import messages_by_rows, replace_text

Fetch = Callable[[str], Awaitable[Picture]]
"""``bot.fetch.fetch_picture``, or the same with other limits."""

MAX_TOKENS = 2_000
"""Of an answer: some models think first."""


async def describe(app: App, stored: StoredMessage, number: int, fetch: Fetch) -> str | None:
    """Return what a picture of a message shows; its message says so from then on.

    Args:
        app: the running program.
        stored: a message that stands.
        number: which of its pictures, from 1; it has so many.
        fetch: downloads one.

    Returns:
        ``None`` if it was recalled or forgotten meanwhile.

    Raises:
        NotFetched: the picture cannot be had.
        ModelError: the vision model does not answer, or with nothing.
        ToolError: looking at pictures has cost all that it may today.
    """
    known = await description_in_message(app.db, stored.row_id, number)
    if known is not None:
        return known
    picture = await _picture(app, stored, number, fetch)
    digest = hashlib.sha256(picture.data).hexdigest()
    said = await description_of_content(app.db, digest)
    if said is None:
        said = await _asked(app, stored.message.chat, picture)
    is_kept = await _keep(app, stored.row_id, number, said, digest)
    return said.text if is_kept else None


async def _picture(app: App, stored: StoredMessage, number: int, fetch: Fetch) -> Picture:
    """Download a picture; addresses expire, so the platform is asked for a new one, once."""
    segment = pictures(stored.message.segments)[number - 1]
    try:
        if segment.url:
            return await fetch(segment.url)
    except NotFetched as error:
        if not error.may_be_stale:
            raise
    url = await _fresh_url(app, stored, number, segment)
    if url in ("", segment.url):
        raise NotFetched("its address has expired, or there is none")
    return await fetch(url)


async def _fresh_url(app: App, stored: StoredMessage, number: int, known: PictureSegment) -> str:
    """Return where the platform says that the picture lies now, empty if it does not."""
    message = stored.message
    # Ids that we made up, where the client gave none, mean nothing to it.
    if not known.file or not message.platform_id.lstrip("-").isdecimal():
        return ""
    try:
        platform = app.accounts.platform(message.chat.bot_id)
        answer = await platform.call("get_msg", message_id=int(message.platform_id))
    except SendError as error:
        logger.debug("the picture of row {} has no new address: {}", stored.row_id, error)
        return ""
    content = answer.get("message") if isinstance(answer, dict) else None
    found = pictures(read_segments(content))[number - 1 : number]
    # Ids are used again: it has to be the same picture.
    return next((one.url for one in found if one.file == known.file), "")


async def _asked(app: App, chat: Chat, picture: Picture) -> Description:
    if await budget_is_spent(app, "vision"):
        raise ToolError("今天看图的额度已用完，明天再看")
    image = Image(picture.media_type, picture.data)
    words = PromptMessage("user", app.prompts.render("describe"), images=(image,))
    answer = await app.model.complete(ModelRequest("vision", (words,), chat, MAX_TOKENS))
    line = description_line(without_thinking(answer.text))
    if not line:
        raise ModelAnswerInvalid("the vision model says nothing of a picture")
    return Description(line, answer.model)


async def _keep(app: App, row_id: int, number: int, said: Description, digest: str) -> bool:
    async with app.db.transaction() as tx:
        standing = await standing_message(tx, row_id)
        if standing is None:
            # Nothing is added to what is kept for one turn; who asks is told all the same.
            return bool(await messages_by_rows(app.db, [row_id], kept=True))
        text, segments = standing
        # The one place where a description enters a text: whatever is made of texts follows it.
        await replace_text(tx, row_id, with_description(text, segments, number, said.text))
        await keep_description(tx, row_id, number, said, digest=digest, at=app.clock.now())
        return True
