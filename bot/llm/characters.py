"""Characters that every file and every connection takes. Pure."""


def whole_characters(text: str) -> str:
    """Return ``text`` with surrogate pairs joined and lone ones replaced: no file takes those."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
