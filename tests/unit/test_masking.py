"""Numbers, keys and passwords that no model gets to see."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.memory.masking import is_sensitive, masked

LETTERS = "invented" * 5
"""For keys that nobody has."""

PHONE = "13800138000"
CARD = "4111111111111111"


def identity_number(body: str) -> str:
    """Return an ID-card number: ``body`` is its first 17 digits."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True))
    return body + "10X98765432"[total % 11]


def card_number(body: str) -> str:
    """Return a card number: ``body`` is all of it but the check digit."""
    return next(
        body + str(check)
        for check in range(10)
        if sum(
            number if index % 2 == 0 else sum(divmod(number * 2, 10))
            for index, number in enumerate(map(int, reversed(body + str(check))))
        )
        % 10
        == 0
    )


@pytest.mark.parametrize(
    "number",
    [
        PHONE,
        "138 0013 8000",
        "138-0013-8000",
        "138.0013.8000",
        "1380-0138-000",
        "138-001-38000",
        "1 3 8 0 0 1 3 8 0 0 0",
        "+8613800138000",
        "+86 138 0013 8000",
        "(+86)138-0013-8000",
        "008613800138000",
        "8613800138000",
        "１３８００１３８０００",
        "１３８－００１３－８０００",
        "138\u200b0013\u200b8000",
        "1\ufe0f\u20e33\ufe0f\u20e38\ufe0f\u20e300138000",
        "𝟏𝟑𝟖𝟎𝟎𝟏𝟑𝟖𝟎𝟎𝟎",
        "+852 9123 4567",
    ],
)
def test_mobile_numbers_are_masked_however_they_are_written(number: str):
    assert masked(f"打我电话{number}就行") == "打我电话[手机号]就行"


@pytest.mark.parametrize(
    "number",
    [
        "010-88886666",
        "01088886666",
        "(010)88886666",
        "（０１０）８８８８６６６６",
        "0571-8765 4321",
        "0757-2345678",
        "+86-10-88886666",
        "+86 010 8888 6666",
    ],
)
def test_landlines_with_an_area_code_are_masked(number: str):
    assert masked(f"店里是{number}。") == "店里是[电话号码]。"


@pytest.mark.parametrize(
    "number",
    [
        identity_number("11010119900307775"),
        identity_number("44030019851231002"),
        "11010119900307123X",
        "11010119900307123x",
        "110101 19900307 1234",
        "110101-19900307-1234",
        "110101900307123",
        "１１０１０１１９９００３０７１２３Ｘ",
    ],
)
def test_identity_card_numbers_are_masked_also_with_a_slip_in_them(number: str):
    assert masked(f"证件号{number}，别外传") == "证件号[身份证号]，别外传"


@pytest.mark.parametrize(
    "number",
    [
        CARD,
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        card_number("622202020011223"),
        card_number("622202020011223344"),
        card_number("62220202001122334"),
        "６２２２" + card_number("622202020011223")[4:],
    ],
)
def test_bank_cards_are_masked(number: str):
    assert masked(f"转到{number}吧") == "转到[银行卡号]吧"


def test_a_card_is_found_behind_another_group_of_four():
    assert masked("2026 4111 1111 1111 1111") == "2026 [银行卡号]"


@pytest.mark.parametrize(
    "key",
    [
        f"sk-{LETTERS}",
        f"sk-proj-{LETTERS}_1",
        "AKIA" + "INVENTED" * 2,
        f"ghp_{LETTERS}",
        f"github_pat_{LETTERS}",
        f"eyJ{LETTERS}.{LETTERS}.{LETTERS}",
        f"LTAI{LETTERS}",
        f"-----BEGIN PRIVATE KEY-----\n{LETTERS}\n{LETTERS}=\n-----END PRIVATE KEY-----",
    ],
)
def test_keys_are_known_by_how_they_begin(key: str):
    assert masked(f"用这个 {key} 试试") == "用这个 [密钥] 试试"


def test_the_beginning_of_a_key_file_is_enough():
    assert masked(f"-----BEGIN RSA PRIVATE KEY-----\n{LETTERS}") == "[密钥]"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("api_key=abcd1234efgh", "api_key=[密钥]"),
        ("密钥：abcd1234efgh", "密钥：[密钥]"),
        (f"Authorization: Bearer {LETTERS}", "Authorization: Bearer [密钥]"),
        ("密码是abc123，记住了", "密码是[密码]，记住了"),
        ("密码：ａｂｃ１２３", "密码：[密码]"),
        ("WiFi密码：hunter!!", "WiFi密码：[密码]"),
        ("密码已经改成 qwe123 了", "密码已经改成 [密码] 了"),
        ("密码 123456", "密码 [密码]"),
        ("密码是admin", "密码是[密码]"),
        ("口令：letmein", "口令：[密码]"),
        ("password: hunter", "password: [密码]"),
        ("my password is hunter2.", "my password is [密码]."),
        ('{"password": "a$b$c"}', '{"password": "[密码]"}'),
        ("验证码 123456", "验证码 [密码]"),
        ("您的验证码123456，5分钟内有效", "您的验证码[密码]，5分钟内有效"),
        ("123456是您的登录验证码", "[密码]是您的登录验证码"),
        (f"密码是{PHONE}", "密码是[密码]"),
        ("https://me:secret@files.example/a", "https://me:[密码]@files.example/a"),
    ],
)
def test_what_is_said_to_be_a_key_or_a_password_is_masked(text: str, result: str):
    assert masked(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "我的QQ是2854196310，群号123456789，小号30001",
        "@小鱼(30001) 10086 和 95588 都打不通",
        "2026-08-22 15:30:00 到 2026/8/23 09:05",
        "16-19 2026-8-22 后天下午三点",
        "20260822153000",
        "1755849600000 和 1755849600000000000",
        "第 123456789012 条，订单 2026082215300001",
        "1999元，2.5折，88.88 万，100,000,000",
        "经验+10000000，等级 12-15",
        "192.168.1.10:8080",
        "密码是多少？密码忘了，密码不对",
        "密码是WiFi的那个",
        "密码 8位以上，密码2026年改过",
        "密码学是CS101的课，口令红包是 88.88 元",
        "the password is wrong, reset the token",
        "max_tokens=150000000, token: 4000",
        "[手机号] [密码] [密钥] [身份证号] [银行卡号] [电话号码]",
        "我觉得可以😀 那就这么定了 hhhh",
    ],
)
def test_ids_dates_prices_and_talk_about_passwords_stay(text: str):
    assert masked(text) == text
    assert not is_sensitive(text)


def test_a_long_number_that_is_no_card_stays():
    other = str((int(CARD[-1]) + 1) % 10)
    assert masked(f"编号{CARD[:-1]}{other}") == f"编号{CARD[:-1]}{other}"


def test_several_numbers_in_one_text_are_masked_each():
    text = f"电话{PHONE}，卡{CARD}，密码 abc123"
    assert masked(text) == "电话[手机号]，卡[银行卡号]，密码 [密码]"


WORDS = "密码 口令 验证码 是 年 ， ： : = password pwd token 密钥 Bearer [密码] [ ] ”"
SIGNS = ':// @ - +86 1 １ "'
DIGITS = f"{PHONE} {CARD} 138 010 110101 19900307 123X sk- {LETTERS} eyJ . abc1"
HEADS = ("-----BEGIN A KEY-----", "-----END A KEY-----", "0013 8000", " is ", " ", "\n", "\u200b")
PIECES = st.sampled_from([*WORDS.split(), *SIGNS.split(), *DIGITS.split(), *HEADS])
CLUTTER = st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join)


@given(CLUTTER)
@example("pwd:pwd:pwd:abc123")
@example(f"密码是密码是{PHONE}{PHONE}")
def test_what_is_masked_is_sensitive_no_more(text: str):
    result = masked(text)
    assert masked(result) == result
    assert not is_sensitive(result)
    assert is_sensitive(text) == (result != text)


HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=12)
ORDINARY = st.one_of(
    HAN,
    st.sampled_from(
        ["，", "。", "！", "？", "…", "哈哈", "😀", "ok", "AI", "[图片]", "@小鱼(30001)"]
    ),
    st.integers(0, 9_999).map(str),
    st.dates().map(str),
    st.times().map(lambda time: time.strftime("%H:%M")),
)


@given(st.lists(ORDINARY, max_size=12).map(lambda parts: "，".join(parts)))
def test_ordinary_chinese_chat_stays_as_it_is(text: str):
    assert masked(text) == text


@given(HAN, st.from_regex(r"1[3-9][0-9]{9}", fullmatch=True), HAN)
def test_no_mobile_number_survives(before: str, number: str, after: str):
    assert masked(f"{before}{number}{after}") != f"{before}{number}{after}"
    assert not re.search(r"\d{11}", masked(f"{before}{number}{after}"))


def test_hostile_text_of_some_length_is_masked_at_once():
    for piece in ("1", "密码", "pwd:", "a", "://a:", "-----BEGIN A-----", "1 ", "eyJ", "="):
        text = piece * (20_000 // len(piece))
        assert masked(masked(text)) == masked(text)
