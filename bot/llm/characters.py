"""Characters that every file and every connection takes. Pure."""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def whole_characters(text: str) -> str:
    """Return ``text`` with surrogate pairs joined and lone ones replaced: no file takes those."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
