"""The words of a text, for the index and for what is looked up in it: one tokenizer for both sides.

Every CJK character is a word of its own, so any run of characters can be found; elsewhere words are
runs of letters and digits. Nothing here raises, whatever the text. See ``docs/search.md``, "Words".
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from bot.text import without_invisible

MAX_PHRASES = 32
"""A longer question is its beginning and its end: each phrase costs a look into the index."""

_CJK_LETTERS = (
    "\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096"
    "\u309d-\u309f\u30a1-\u30fa\u30fc-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_CJK = re.compile(f"[{_CJK_LETTERS}]")
_WORD = re.compile(rf"[{_CJK_LETTERS}]|(?:(?![{_CJK_LETTERS}])[^\W_])+")
_LATIN = re.compile(rf"(?:(?![{_CJK_LETTERS}])[^\W_])+")
_RUN = re.compile(rf"[{_CJK_LETTERS}]+|(?:(?![{_CJK_LETTERS}])[^\W_])+")

COMMON_CHARACTERS = frozenset(
    "的了吗呢吧啊呀嘛哦哈么着过地得是在有和跟与或就都也还又再很太最更会能要想让把被给对从到向"
    "不没别我你您他她它们咱这那哪谁啥几个些点次种样里上下中来去说看做请问为以所而但如"
    "はがをにでとものへやかねよ"
)
"""Two of these side by side say nothing of what is asked."""

_COMMON_WORDS = frozenset(
    "什么 怎么 为什 怎样 多少 如何 因为 所以 但是 如果 可以 知道 觉得 时候 现在 一个 一下 一些 一点"
    " 有没 没有 是不 还是 或者 我们 你们 他们 她们 大家 自己 这个 那个 这样 那样 今天 记得 告诉"
    " です ます した して する から まで"
    " a an the and or of to in on at by for is are was were be am do does did has have had it its"
    " i me my you your he she we they this that what which who how when where why can could will"
    " would should please tell about if so not no".split()
)

Segment = Callable[[str], Iterable[str]]
"""Cuts a run of CJK characters into what is looked up together."""


def _plain(text: str) -> str:
    """Return ``text`` with half-width and small letters.

    Character by character, so that a part of a text becomes the same as it does within the whole.
    """
    plain = (unicodedata.normalize("NFKC", one).lower() for one in without_invisible(text))
    return "".join(plain)


def _words(text: str) -> list[str]:
    return _WORD.findall(_plain(text))


def latin_words(plain: str) -> list[str]:
    """Return the words of ``plain`` that are not CJK characters; its letters are small already."""
    return _LATIN.findall(plain)


def index_words(text: str) -> str:
    """Return the words of ``text`` as the index takes them, with spaces in between.

    Punctuation, signs and emoji are none.
    """
    return " ".join(_words(text))


def index_pairs(text: str, where: str = "") -> str:
    """Return every two CJK characters of ``text`` that stand side by side, as words of their own.

    A pair is rare where its characters are not, so looking it up costs a fraction of a phrase; and
    one that begins with where the text belongs is met nowhere else.

    Args:
        text: what is indexed.
        where: letters and digits that each pair begins with.
    """
    neighbours = pairwise(_words(text))
    return " ".join(where + a + b for a, b in neighbours if _CJK.match(a) and _CJK.match(b))


def _phrase(words: Iterable[str]) -> str:
    """Return words that stand side by side. They are letters and digits, so quotes hold them."""
    line = " ".join(words)
    return f'"{line}"' if line else ""


def bigrams(run: str) -> Iterator[str]:
    """Yield every two neighbours of a run of characters, or its only one."""
    if len(run) == 1:
        yield run
    yield from (first + second for first, second in pairwise(run))


def question_phrases(text: str, segment: Segment = bigrams) -> tuple[str, ...]:
    """Return a MATCH expression for each thing that ``text`` may ask for, none twice.

    Args:
        text: what somebody said.
        segment: what to look up of a run of CJK characters; without a dictionary, all its bigrams.
    """
    phrases = (_phrase(_words(part)) for part, _ in question_parts(_plain(text), segment))
    return tuple(phrase for phrase in phrases if phrase)


def question_parts(plain: str, segment: Segment) -> list[tuple[str, bool]]:
    """Return what a question may ask for, none twice, each with whether it is a word of letters.

    Args:
        plain: what somebody said, folded.
        segment: as in ``question_phrases``.
    """
    found = (part for run in _RUN.findall(plain) for part in _parts(run, segment))
    parts = [part for part in dict.fromkeys(found) if not _is_common(part)]
    if len(parts) > MAX_PHRASES:
        half = MAX_PHRASES // 2
        parts = parts[:half] + parts[-half:]
    return [(part, not any(map(_CJK.match, part))) for part in parts]


def _parts(run: str, segment: Segment) -> Iterable[str]:
    return segment(run) if _CJK.match(run) else (run,)


def _is_common(part: str) -> bool:
    if part in _COMMON_WORDS or all(one in COMMON_CHARACTERS for one in part):
        return True
    return len(part) == 1 and part.isascii() and part.isalpha()


def question(text: str) -> str:
    """Return the MATCH expression for what has to do with ``text``, ``""`` if nothing can be."""
    return any_of(question_phrases(text))


def any_of(phrases: Iterable[str]) -> str:
    """Return the MATCH expression for what has any of some phrases, ``""`` if there is none."""
    return " OR ".join(phrases)


def in_pairs(phrase: str, where: str = "") -> str:
    """Return what finds a phrase of several CJK characters among the pairs of a text.

    ``""`` if it is none. It may find others in which not all of the characters stand together.

    Args:
        phrase: a MATCH expression of one phrase.
        where: as in ``index_pairs``.
    """
    words = _words_of(phrase)
    return _phrase(where + a + b for a, b in pairwise(words)) if is_exact(phrase) else ""


def is_exact(phrase: str) -> bool:
    """Whether a phrase matches its own words only. Others match all forms of theirs."""
    return all(_CJK.match(word) for word in _words_of(phrase))


def holders(phrase: str, words: Mapping[int, str]) -> list[int]:
    """Return which texts an exact phrase stands in.

    Args:
        phrase: it matches its own words only.
        words: what ``index_words`` gives of each text, with a space before and behind.
    """
    run = f" {' '.join(_words_of(phrase))} "
    return [key for key, of_text in words.items() if run in of_text]


def _words_of(phrase: str) -> list[str]:
    return phrase.strip('"').split()
