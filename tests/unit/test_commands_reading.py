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


@pytest.mark.parametrize(
    ("typed", "name", "arguments"),
    [
        ("/搜花生", "搜", "花生"),
        ("/搜花生 自 8月1日", "搜", "花生 自 8月1日"),
        ("/搜花生  “红 烧”", "搜", "花生  “红 烧”"),
        ("/ 搜花生", "搜", "花生"),
        ("/搜ピーナッツ", "搜", "ピーナッツ"),
        ("/记住我对花生过敏\n真的", "记住", "我对花生过敏\n真的"),
        (f"/{PREFIX} 搜花生 酱", "搜", "花生 酱"),
    ],
)
def test_free_text_may_follow_its_name_without_a_space(typed: str, name: str, arguments: str):
    assert read(typed) == Command(name, arguments)
    assert read(at(BOT), typed) == Command(name, arguments)


def test_an_at_behind_joined_words_is_an_argument():
    assert read("/搜花生", at(BEAR)) == Command("搜", f"花生 {BEAR}")


@pytest.mark.parametrize(
    "typed",
    [
        "/搜图",
        "/搜歌 晴天",
        "/搜花",
        "/搜abc",
        "/搜，花生",
        "/搜索花生",
        "/搜图这张是谁",
        "/记住了",
        "/记住了吗你",
        "/别搜花生",
        "/忘记花生过敏",
        "/提醒我明天开会",
        "/人设你是海盗",
        "/停车场在哪",
        f"/{PREFIX}搜花生",
        "搜花生",
    ],
)
def test_nothing_else_is_read_without_a_space(typed: str):
    assert read(typed) is None


def test_free_text_follows_no_bare_name():
    assert read("记住我对花生过敏", starts=("",)) is None
    assert read("记住我对花生过敏", starts=("/", "")) is None
    assert read("/记住我对花生过敏", starts=("/", "")) == Command("记住", "我对花生过敏")
    assert read("记住 我对花生过敏", starts=("",)) == Command("记住", "我对花生过敏")


@given(st.text(st.characters(whitelist_categories=["Lo"]), min_size=1, max_size=8))
def test_what_joins_is_never_taken_from_a_longer_name(words: str):
    for name in NAMES:
        assert read(f"/{name}") == Command(name, "")
    command = read(f"/搜{words}")
    assert command is None or command == Command("搜", words)


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
