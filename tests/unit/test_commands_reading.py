"""Which messages are commands, and which are ordinary words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands.table import ACTIONS
from bot.conversation.commands import COMMANDS, NAMES, PREFIX, Command, read_command, spec_of
from bot.model import Segment

BOT, BEAR = "10001", "30002"
SLASH = ("/",)


def text(words: str) -> Segment:
    return Segment("text", {"text": words})


def at(user_id: str) -> Segment:
    return Segment("at", {"qq": user_id})


QUOTE = Segment("reply", {"id": "700"})
IMAGE = Segment("image", {"file": "a.gif"})


def read(*pieces: str | Segment, starts: tuple[str, ...] = SLASH) -> Command | None:
    segments = [piece if isinstance(piece, Segment) else text(piece) for piece in pieces]
    return read_command(segments, BOT, starts)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_is_read(name: str):
    assert read(f"/{name}") == Command(name, "")
    assert read(f"/{PREFIX} {name}") == Command(name, "")
    assert spec_of(name).help


def test_every_name_is_done_and_has_a_description_of_its_own():
    assert set(ACTIONS) == NAMES
    assert len(COMMANDS) == len(NAMES)


def test_an_unknown_name_has_no_description():
    with pytest.raises(KeyError):
        spec_of("炸群")


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("/设置 replyMode auto", "replyMode auto"),
        ("  /设置   replyMode   auto  ", "replyMode   auto"),
        ("/设置\nreplyMode auto", "replyMode auto"),
        ("/设置　replyMode auto", "replyMode auto"),
        ("/设置 persona 第一行\n第二行", "persona 第一行\n第二行"),
        ("/ 设置 replyMode auto", "replyMode auto"),
        (f"/{PREFIX} 设置 replyMode auto", "replyMode auto"),
        (f"/{PREFIX}   设置  replyMode auto", "replyMode auto"),
    ],
)
def test_what_follows_a_name_is_its_arguments(typed: str, arguments: str):
    assert read(typed) == Command("设置", arguments)


def test_an_at_of_the_bot_and_a_quote_may_stand_before_a_command():
    assert read(at(BOT), " /状态") == Command("状态", "")
    assert read(at(BOT), "/状态") == Command("状态", "")
    assert read(QUOTE, at(BOT), " /状态") == Command("状态", "")
    assert read(QUOTE, " /状态") == Command("状态", "")
    assert read(" ", at(BOT), at(BOT), " /状态") == Command("状态", "")


def test_an_at_behind_a_name_is_an_argument():
    assert read("/拉黑 ", at(BEAR)) == Command("拉黑", BEAR)
    assert read("/拉黑", at(BEAR)) == Command("拉黑", BEAR)
    assert read("/拉黑 ", at(BEAR), " 谢谢") == Command("拉黑", f"{BEAR}  谢谢")
    assert read("/拉黑 ", at(BOT)) == Command("拉黑", BOT)


def test_an_at_of_somebody_else_before_a_name_makes_it_theirs():
    assert read(at(BEAR), " /状态") is None


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "   ",
        "/",
        "/ ",
        "状态",
        "／状态",
        "//状态",
        "/状态栏",
        "/状态，怎么样",
        "/我的状态",
        "看看 /状态",
        "/weather 北京",
        "/天气",
        f"/{PREFIX}状态",
        f"/{PREFIX} 天气",
        f"/{PREFIX} {PREFIX} 状态",
        PREFIX,
    ],
)
def test_these_are_ordinary_messages(typed: str):
    assert read(typed) is None


def test_a_message_with_a_picture_is_no_command():
    assert read("/状态", IMAGE) is None
    assert read(IMAGE, "/状态") is None


def test_the_prefix_alone_asks_for_help():
    assert read(f"/{PREFIX}") == Command("帮助", "")
    assert read(f"/{PREFIX}  ") == Command("帮助", "")


def test_an_empty_start_allows_bare_names_and_still_no_longer_words():
    for starts in (("",), ("/", ""), ("", "/")):
        assert read("状态", starts=starts) == Command("状态", "")
        assert read(f"{PREFIX} 状态", starts=starts) == Command("状态", "")
        assert read("状态不错", starts=starts) is None
        assert read(f"{PREFIX} 你好", starts=starts) is None
    assert read("/状态", starts=("/", "")) == Command("状态", "")
    assert read("/状态", starts=("",)) is None


def test_any_of_several_starts_will_do_also_longer_ones():
    starts = ("/", "!", "/!", "bot ")
    for typed in ("/状态", "!状态", "/!状态", "bot 状态"):
        assert read(typed, starts=starts) == Command("状态", "")


def test_without_a_start_nothing_is_a_command():
    assert read("/状态", starts=()) is None


@given(st.text(max_size=40), st.sampled_from([("/",), ("",), ("/", "", "!")]))
def test_whatever_is_typed_a_command_has_a_known_name(typed: str, starts: tuple[str, ...]):
    command = read(typed, starts=starts)
    if command is not None:
        assert command.name in NAMES
        assert command.arguments == command.arguments.strip()


@given(st.sampled_from(sorted(NAMES)), st.text(max_size=40))
def test_nothing_behind_a_name_is_lost(name: str, typed: str):
    command = read(f"/{name} {typed}")
    assert command == Command(name, typed.strip())
