"""Numbers and secrets that no model and no memory needs: found, and replaced by their kind.

See ``docs/memory.md``, "Input" and "Checks". What is found are numbers as they are given out in
China, and the keys and passwords that people paste. Where a number might be meant or not, it is
masked: a hidden price costs less than a stored card.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

Check = Callable[[str], bool]
Span = tuple[int, int]

_SEPARATORS = str.maketrans("－‐‑–—＿：＝＋．\u3000\xa0\t（）", "-----_:=+.   ()")


@dataclass(frozen=True, slots=True)
class _Rule:
    """What to look for in folded text, and what to put in its place."""

    mask: str
    pattern: re.Pattern[str]
    """Its group ``secret`` is what is replaced."""
    is_meant: Check = lambda _: True


def masked(text: str) -> str:
    """Return ``text`` with each sensitive number, key and password replaced by its kind.

    The masks are ``[身份证号]``, ``[银行卡号]``, ``[手机号]``, ``[电话号码]``, ``[密钥]``,
    ``[密码]``. Full-width and other digits, and characters that nobody sees, hide nothing. All else
    stays as it is, and ``masked(masked(text)) == masked(text)``.
    """
    while (result := _masked_once(text)) != text:
        text = result
    return text


def is_sensitive(text: str) -> bool:
    """Whether ``masked`` would hide something of ``text``."""
    return _masked_once(text) != text


def _masked_once(text: str) -> str:
    folded, positions = _folded(text)
    if not _SUSPECT.search(folded):
        return text
    found = _findings(folded)
    for start, end in sorted(found, reverse=True):
        text = text[: positions[start]] + found[start, end] + text[positions[end] :]
    return text


def _findings(folded: str) -> dict[Span, str]:
    """Return the spans to hide, with their masks; of two that meet, the earlier rule's."""
    found: dict[Span, str] = {}
    for rule in _RULES:
        for span in _spans(rule, folded):
            if not any(span[0] < end and start < span[1] for start, end in found):
                found[span] = rule.mask
    return found


def _spans(rule: _Rule, folded: str) -> Iterator[Span]:
    for match in rule.pattern.finditer(folded):
        if rule.is_meant(match["secret"]):
            yield match.span("secret")


def _folded(text: str) -> tuple[str, list[int]]:
    """Return ``text`` as the rules read it, and where each of its characters, and its end, was."""
    characters = [_fold(character) for character in text]
    positions = [index for index, character in enumerate(characters) if character]
    return "".join(characters).translate(_SEPARATORS), [*positions, len(text)]


@lru_cache(maxsize=4_096)
def _fold(character: str) -> str:
    """Return the ASCII form of a digit or letter, nothing for what nobody sees, else itself."""
    if character.isascii():
        return character
    if unicodedata.category(character) in {"Cf", "Mn", "Me"}:
        return ""
    plain = unicodedata.normalize("NFKC", character)
    return plain if len(plain) == 1 and plain.isascii() and plain.isalnum() else character


def _is_luhn(digits: str) -> bool:
    """Whether the last digit is the check digit that card numbers have."""
    numbers = [int(digit) for digit in reversed(digits) if digit.isdigit()]
    doubled = (sum(divmod(2 * number, 10)) for number in numbers[1::2])
    return (sum(numbers[::2]) + sum(doubled)) % 10 == 0


def _rule(mask: str, pattern: str, is_meant: Check | None = None) -> _Rule:
    compiled = re.compile(pattern, re.ASCII | re.IGNORECASE | re.VERBOSE)
    return _Rule(mask, compiled) if is_meant is None else _Rule(mask, compiled, is_meant)


# The first two digits of an ID-card number are a province.
_PROVINCE = r"(?: 1[1-5] | 2[1-3] | 3[1-7] | 4[1-6] | 5[0-4] | 6[1-5] | 71 | 8[1-3] | 91 )"
_MONTH_AND_DAY = r"(?: 0[1-9] | 1[0-2] ) (?: 0[1-9] | [12]\d | 3[01] )"

_PASSWORD_WORD = r"""(?:
    密码(?!学) | 口令 | 验证码 | 校验码 | 动态码
  | (?<![a-z]) (?: password | passwd | passcode | pwd ) (?![a-z])
)"""
_SAID_TO_BE = (
    r"""(?: ["'”]? \s{0,3} [一-鿿]{0,4}? \s{0,3} (?: [:=] | 是 | 为 | 成 | 叫 ) [\s:=]{0,3} )"""
)
_IS = r"(?: \s{1,3} is \s{1,3} )"
_OPENING = r"""["'“‘「『【<(]{0,2}"""
_UNCOUNTED = r"(?! [\d.:-]+ \s* [年月日号位个次字元块天点分秒时条] )"
# A closing sign at the end of a password is rather the sentence's.
_VALUE = r"""[!\#-&(-~]{4,} (?<! [,.;)}>] )"""
_VALUE_WITH_DIGIT = rf"{_UNCOUNTED} (?= [!\#-&(-/:-~]{{0,64}}\d ) {_VALUE}"
_VALUE_WITH_SIGN = rf"{_UNCOUNTED} (?= [a-z]{{0,64}}[!\#-&(-@\[-`{{-~] ) {_VALUE}"
_VALUE_NO_WORD = rf"(?= [a-z]{{0,64}}[\d\#$%&*+=@^_~] ) {_VALUE}"

_SUSPECT = re.compile(r"\d|[!-~]{3}", re.ASCII)
"""Every rule asks for one of these; most of what people write has neither."""

_RULES = (
    _rule(
        "[密钥]",
        r"(?P<secret> -----BEGIN\ [A-Z0-9\ ]{3,40}-----"
        r" (?: (?!-----) [\s\S] )*+ (?: -----END\ [A-Z0-9\ ]{3,40}----- )? )",
    ),
    # Keys that can be told by how they begin.
    _rule(
        "[密钥]",
        r"""(?<![a-z0-9]) (?P<secret>
            eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?
          | (?: sk | rk | pk ) [-_] [a-z0-9_-]{16,}
          | (?: AKIA | ASIA ) [0-9A-Z]{16}
          | LTAI [0-9a-z]{12,}
          | AKID [0-9a-z]{16,}
          | AIza [\w-]{30,}
          | gh[pousr]_ [0-9a-z]{16,}
          | github_pat_ \w{16,}
          | glpat- [\w-]{16,}
          | hf_ [0-9a-z]{16,}
          | npm_ [0-9a-z]{30,}
          | xox[abeprs]- [\w-]{10,}
          | \d{8,10}:[\w-]{35}
        )""",
    ),
    # Keys that can be told by what stands before them.
    _rule("[密钥]", r"\b bearer \s+ (?P<secret> [\w.~+/-]{16,}=* )"),
    _rule(
        "[密钥]",
        r"""(?: (?<![a-z]) (?: (?:api|access|secret|private)[-_ ]?(?:key|token) | apikey
                | (?:app|client)?[-_ ]?secret | token ) (?![a-z]) | 密钥 | 秘钥 | 私钥 | 令牌 )
            ["'”]? \s{0,3} (?: [:=] | 是 | 为 ) [\s:=]{0,3} ["'“]?
            (?P<secret> (?= [a-z_./+-]*\d ) (?= [\d_./+-]*[a-z] ) [\w./+-]{8,}=* )""",
    ),
    _rule("[密码]", r":// [^\s/@:]{1,64} : (?P<secret> [!-.0-?A-~]{3,} ) @"),
    # A password is what is said to be one, with a digit or a sign in it or one whole word …
    _rule("[密码]", rf"{_PASSWORD_WORD} {_SAID_TO_BE} {_OPENING} (?P<secret> {_VALUE_WITH_SIGN} )"),
    _rule(
        "[密码]",
        rf"{_PASSWORD_WORD} {_SAID_TO_BE} {_OPENING} (?P<secret> [a-z]{{4,}}+ (?! \s*[一-鿿] ) )",
    ),
    _rule("[密码]", rf"{_PASSWORD_WORD} {_IS} {_OPENING} (?P<secret> {_VALUE_NO_WORD} )"),
    # … or what has a digit in it and stands beside the word.
    _rule("[密码]", rf"{_PASSWORD_WORD} [\ ]{{0,3}} {_OPENING} (?P<secret> {_VALUE_WITH_DIGIT} )"),
    _rule(
        "[密码]",
        r"(?<!\d) (?P<secret> \d{4,8} ) \s? [是为(] [^\d\n]{0,8}? (?: 验证码 | 校验码 | 动态码 )",
    ),
    # Without its check digit: a number with a slip in it is as personal.
    _rule(
        "[身份证号]",
        rf"""(?<!\d) (?P<secret> {_PROVINCE} \d{{4}} [- ]? (?:18|19|20)\d\d {_MONTH_AND_DAY} [- ]?
            \d{{3}} [\dx] ) (?!\d)""",
    ),
    _rule(
        "[身份证号]",
        rf"(?<!\d) (?P<secret> {_PROVINCE} \d{{4}} \d\d {_MONTH_AND_DAY} \d{{3}} ) (?!\d)",
    ),
    # Digits in a row are a card only if they begin like one: ids and order numbers begin
    # with 1, or with a year.
    _rule(
        "[银行卡号]",
        r"(?<!\d) (?P<secret> (?: [3-689]\d{3} | 22[2-9]\d | 2[3-6]\d\d | 27[01]\d ) \d{12,15} )"
        r" (?!\d)",
        _is_luhn,
    ),
    _rule(
        "[银行卡号]",
        r"(?<!\d) (?= (?P<secret> (?:\d{4}[- ]){4} \d{1,3} ) (?!\d) )",
        _is_luhn,
    ),
    _rule(
        "[银行卡号]",
        r"(?<!\d) (?= (?P<secret> (?:\d{4}[- ]){3} \d{4} ) (?!\d) )",
        _is_luhn,
    ),
    _rule(
        "[银行卡号]",
        r"(?<!\d) (?= (?P<secret> \d{6}[- ]\d{10,13} ) (?!\d) )",
        _is_luhn,
    ),
    _rule(
        "[手机号]",
        r"""(?<!\d) (?P<secret> (?: \(? (?:\+|00)? 86 \)? [-\ ]{0,2} )?
            (?: 1[3-9]\d [-\ ._·]{0,2} \d{4} [-\ ._·]{0,2} \d{4}
              | 1[3-9]\d\d-\d{4}-\d{3}
              | 1[3-9]\d-\d{3}-\d{5}
              | 1(?P<gap>[-\ ])[3-9](?:(?P=gap)\d){9}
            ) ) (?!\d)""",
    ),
    _rule(
        "[手机号]", r"(?<!\d) (?P<secret> \+ (?:852|853|886) [-\ ]? \d (?:[-\ ]?\d){7,8} ) (?!\d)"
    ),
    _rule(
        "[电话号码]",
        r"""(?<!\d) (?P<secret>
            (?: \(? 0 | \(? (?:\+|00)86 \)? [-\ ]? \(? 0? ) (?: 10 | 2\d | [3-9]\d\d ) \)?
            [-\ ]{0,2} [2-8]\d{2,3}[-\ ]?\d{4} ) (?!\d)""",
    ),
)
