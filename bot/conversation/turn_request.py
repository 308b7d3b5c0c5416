"""The prompt of a turn in its parts, each of which may have to give way to a model's window. Pure.

See ``docs/architecture.md``, "The prompt of a turn", and ``docs/tools.md``, "Tools in the
conversation".
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bot.conversation.prompt import answer_text, new_turn_text, question_text
from bot.conversation.prompt_message import PromptMessage
from bot.conversation.tools import ToolCall
from bot.model import ToolRound, Turn, TurnLine

RECALLED = "（已撤回）"
"""What stands for an answer, or a result, of which nothing is left."""

Messages = tuple[PromptMessage, ...]


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a model is asked in a turn, built once; what tools give is added."""

    rules: PromptMessage
    """The system message."""
    memory: Messages
    """What is remembered, before the conversation; may be empty."""
    earlier: tuple[Messages, ...]
    """The turns that the prompt shows, oldest first, each with its question first."""
    lines: tuple[TurnLine, ...]
    """Of the new turn."""
    tail: str
    rounds: Messages = ()
    """What tools gave in this turn, with the calls."""

    def messages(self) -> Messages:
        """Return the whole prompt."""
        return (
            self.rules,
            *self.memory,
            *(message for turn in self.earlier for message in turn),
            *self.newest(),
        )

    def newest(self) -> Messages:
        """Return the new turn, with what tools gave."""
        return (PromptMessage("user", new_turn_text(self.lines, self.tail)), *self.rounds)

    def with_round(self, one: ToolRound) -> "TurnRequest":
        """Return the request with what one more answer of the model had done."""
        return replace(self, rounds=(*self.rounds, *round_messages(one)))

    def with_last_word(self, text: str) -> "TurnRequest":
        """Return the request with something said behind all that tools gave."""
        return replace(self, rounds=(*self.rounds, PromptMessage("user", text)))


def turn_messages(turn: Turn) -> Messages:
    """Return an earlier turn as it was sent, and its answer."""
    return (
        PromptMessage("user", question_text(turn.lines)),
        *(message for one in turn.tools for message in round_messages(one)),
        PromptMessage("assistant", answer_text(turn.lines) or RECALLED),
    )


def round_messages(one: ToolRound) -> Iterator[PromptMessage]:
    """Yield what a model called, and each result."""
    calls = tuple(ToolCall(use.call_id, use.name, use.arguments) for use in one.uses)
    yield PromptMessage("assistant", one.text, calls=calls, model=one.model)
    for use in one.uses:
        yield PromptMessage("tool", use.result, call_id=use.call_id, model=one.model)
