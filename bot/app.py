"""The running program as one frozen value, and how it is put together."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from loguru import logger

from bot.alarms import Alarms
from bot.clock import Clock
from bot.config import NO_EMBEDDER, Config
from bot.conversation.calibration import Calibration
from bot.conversation.floor import Floor, Pace
from bot.conversation.pacing import SendLimits
from bot.conversation.tools import Tool
from bot.errands import Errands
from bot.errors import StoreBusy
from bot.llm.bundled import BundledEmbedder
from bot.llm.embedder import Embedder
from bot.llm.embedding import EndpointEmbedder
from bot.llm.openai_model import OpenAIModel
from bot.llm.protocol import ChatModel, Purpose, UsageRecorder
from bot.llm.routing import ModelConfig, ModelSlot, Routes
from bot.lull import Lull
from bot.mcp.config import read_servers
from bot.mcp.servers import Servers
from bot.model import Chat, Usage
from bot.platform.accounts import Accounts
from bot.platform.outbox import Outbox
from bot.prompts import Prompts
from bot.search.matrix import Matrices
from bot.settings import Settings
from bot.store.access import AccessBook, open_access
from bot.store.chats import account_ids
from bot.store.choices import ModelChoices, open_choices
from bot.store.database import Database, open_database
from bot.store.group_commit import GroupCommit
from bot.store.ingest import Arrival, Receipt, store_arrivals
from bot.store.opt_outs import OptOuts, open_opt_outs
from bot.store.patience import LastingWrites, Patience
from bot.store.settings import SettingsBook, open_settings
from bot.store.usage import add_usage


@dataclass(frozen=True, slots=True)
class App:
    """All that a verb may need. Made by ``open_app``."""

    config: Config
    clock: Clock
    db: Database
    settings: SettingsBook
    access: AccessBook
    choices: ModelChoices
    opt_outs: OptOuts
    model: ChatModel
    embedder: Embedder | None
    """``None``: messages are searched by their words alone."""
    matrices: Matrices
    routes: Routes
    prompts: Prompts
    accounts: Accounts
    outbox: Outbox
    floor: Floor
    arrivals: GroupCommit[Arrival, Receipt]
    lasting: LastingWrites
    patience: Patience
    errands: Errands
    alarms: Alarms
    lull: Lull
    mcp: Servers
    started_at: int
    """UTC milliseconds."""
    tools: tuple[Tool[Any], ...] = ()
    """Beside those that are built in."""
    calibrations: dict[str, Calibration] = field(default_factory=dict)
    """What calls have taught of each model, since the start."""

    @property
    def name(self) -> str:
        """What the bot calls itself."""
        return self.config.nickname[0] if self.config.nickname else "群忆"

    @property
    def reading_models(self) -> tuple[str, ...]:
        """The names of the models to whose providers messages go, whatever for."""
        purposes: tuple[Purpose, ...] = ("chat", "reflect.group", "decide", "vision", "embed")
        configured: list[Purpose] = [p for p in purposes if self.routes.is_configured(p)]
        routes = (route for name in configured for route in self.routes.candidates(name))
        return tuple(dict.fromkeys(route.model for route in routes))

    def is_operator(self, user_id: str) -> bool:
        """Whether a user id is one of ``SUPERUSERS``."""
        return user_id in self.config.superusers

    def is_bot(self, user_id: str, chat: Chat) -> bool:
        """Whether a user id is an account of this store or a known bot; operators never are."""
        if self.accounts.is_known(user_id):
            return True
        return user_id in self.settings.of(chat).bot_accounts and not self.is_operator(user_id)


def model_config(config: Config) -> ModelConfig:
    """Return what the model room needs of the static configuration."""

    def slot(name: str) -> ModelSlot:
        key = getattr(config, f"{name}_api_key")
        return ModelSlot(
            model=getattr(config, f"{name}_model") or "",
            base_url=getattr(config, f"{name}_base_url") or "",
            api_key=key.get_secret_value() if key else "",
        )

    key = config.openai_api_key
    return ModelConfig(
        base_url=config.openai_base_url or "",
        api_key=key.get_secret_value() if key else "",
        chat=slot("chat"),
        chat_fallback_models=config.chat_fallback_models,
        memory=slot("memory"),
        decision=slot("decision"),
        vision=slot("vision"),
        embedding=ModelSlot() if config.embedding_model == NO_EMBEDDER else slot("embedding"),
    )


def pace_of(settings: Settings) -> Pace:
    """Return when a turn may start, in milliseconds."""
    return Pace(
        debounce_ms=round(settings.reply_debounce_seconds * 1000),
        gap_ms=round(settings.reply_min_gap_seconds * 1000),
    )


def _send_limits(settings: Settings) -> SendLimits:
    return SendLimits(
        gap_seconds=settings.send_gap_seconds,
        per_chat_per_minute=settings.send_per_chat_per_minute,
        per_account_per_minute=settings.send_per_account_per_minute,
    )


def _warn_wait(error: StoreBusy) -> None:
    logger.warning("what happens waits to be stored and is kept meanwhile: {}", error)


@asynccontextmanager
async def open_app(
    config: Config,
    clock: Clock,
    model: ChatModel | None = None,
    embedder: Embedder | None = None,
    tools: tuple[Tool[Any], ...] = (),
) -> AsyncIterator[App]:
    """Put the program together and take it apart at the end, with nothing left unwritten.

    Args:
        config: the static configuration.
        clock: the wall clock, or a virtual one.
        model: for tests and the demo; the configured one by default.
        embedder: for tests; the configured one by default.
        tools: beside those that are built in.

    Raises:
        StoreError: the database cannot be opened or migrated.
        SettingError: a stored setting is not allowed any more.
        ConfigError: the file of ``MCP_CONFIG`` cannot be used.
    """
    servers = read_servers(config.mcp_config) if config.mcp_config else ()
    async with AsyncExitStack() as stack:
        db = await stack.enter_async_context(
            open_database(
                config.database_path, now=clock.now(), synchronous=config.sqlite_synchronous
            )
        )
        settings = await open_settings(db, config.initial_settings)
        accounts = Accounts(await account_ids(db))
        routes = Routes(model_config(config))
        patience = Patience(_warn_wait)
        opt_outs = await open_opt_outs(db)
        arrivals, lasting = _arrivals(db, opt_outs, patience), LastingWrites(patience)
        stack.push_async_callback(arrivals.flush)
        stack.push_async_callback(lasting.settled)
        errands = Errands()
        mcp = Servers(servers, clock)
        stack.push_async_callback(mcp.stop)
        app = App(
            config=config,
            clock=clock,
            db=db,
            settings=settings,
            access=await open_access(db),
            choices=await open_choices(db),
            opt_outs=opt_outs,
            model=model or _configured_model(routes, db, clock, stack),
            embedder=embedder or _configured_embedder(config, routes, db, clock, stack),
            matrices=Matrices(),
            routes=routes,
            prompts=Prompts(),
            accounts=accounts,
            outbox=Outbox(accounts, clock, lambda: _send_limits(settings.general)),
            floor=Floor(),
            arrivals=arrivals,
            lasting=lasting,
            patience=patience,
            errands=errands,
            alarms=Alarms(),
            lull=Lull(clock),
            mcp=mcp,
            started_at=clock.now(),
            tools=tools,
        )
        # The first to end: nobody works on what is being taken apart.
        stack.push_async_callback(errands.stop)
        mcp.start()
        yield app


def _arrivals(db: Database, opt_outs: OptOuts, patience: Patience) -> GroupCommit[Arrival, Receipt]:
    async def commit(group: Sequence[Arrival]) -> Sequence[Receipt]:
        return await store_arrivals(db, group, opt_outs)

    return GroupCommit(commit, patience)


def _configured_model(
    routes: Routes, db: Database, clock: Clock, stack: AsyncExitStack
) -> OpenAIModel:
    model = OpenAIModel(routes, clock=clock, record=_recorder(db))
    stack.push_async_callback(model.close)
    return model


def _configured_embedder(
    config: Config, routes: Routes, db: Database, clock: Clock, stack: AsyncExitStack
) -> Embedder | None:
    """Return the embedder that is set, or the one that comes along if none is."""
    if config.embedding_model is None:
        embedder: Embedder = BundledEmbedder()
    elif routes.is_configured("embed"):
        (route,) = routes.candidates("embed")
        embedder = EndpointEmbedder(route, clock=clock, record=_recorder(db))
    else:
        return None
    stack.push_async_callback(embedder.close)
    return embedder


def _recorder(db: Database) -> UsageRecorder:
    async def record(usage: Usage) -> None:
        await add_usage(db, usage)

    return record
