"""Estimated tokens of a text, where no provider counts them."""

CHARS_PER_TOKEN = 4  # the usual rule of thumb; every provider counts differently
MESSAGE_TOKENS = 4  # what a chat format adds around one message


def estimate_tokens(text: str) -> int:
    """Characters / CHARS_PER_TOKEN, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)
