"""Compare texts, such as outputs and error messages, with what is essential in them."""

import re


def matches(text, pattern):
    """Whether a text is a pattern, in which `...` stands for any text."""
    parts = (re.escape(part.strip()) for part in pattern.split("..."))
    return re.fullmatch(r"\s*" + ".*".join(parts) + r"\s*", text, re.DOTALL)


def begins(message, pattern):
    """Whether a message is one line that begins with a pattern, in which `...` is any text."""
    return "\n" not in message and matches(message, f"{pattern}...")
