"""Which model an operator chose for a chat; see ``docs/architecture.md``, "Models"."""

from bot.model import Chat
from bot.store.chats import choose_model
from bot.store.database import Database
from bot.store.queries import load

_sql = load("chats")


class ModelChoices:
    """The choices in force, in memory: every answer asks.

    Made by ``open_choices``; a change is durable before it holds.
    """

    def __init__(self, db: Database, models: dict[Chat, str]) -> None:
        self._db = db
        self._models = models

    def of(self, chat: Chat) -> str:
        """Return the model chosen for a chat, ``""`` if none was."""
        return self._models.get(chat, "")

    async def choose(self, chat: Chat, model: str, *, by: str, at: int) -> None:
        """Let a model answer in a chat first.

        Args:
            chat: which.
            model: its name, or ``""`` for the configured order.
            by: the user id of the operator.
            at: UTC milliseconds.
        """
        async with self._db.transaction() as tx:
            await choose_model(tx, chat, model, by=by, at=at)
        self._models[chat] = model


async def open_choices(db: Database) -> ModelChoices:
    """Read the choices."""
    async with db.reader() as connection:
        rows = [row async for row in _sql.chosen_models(connection)]
    models = {Chat(r["bot_id"], r["kind"], r["peer_id"]): r["model"] for r in rows}
    return ModelChoices(db, models)
