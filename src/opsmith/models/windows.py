"""How many tokens fit each model, prompt and completion together; None: not known, so that nothing is left out.

Where the price list of `genai-prices` knows a window it is used, except for the models named here.
"""

from __future__ import annotations

from opsmith.models.price import find_listed

# 2026-02, providers' model pages; the longest prefix wins
WINDOWS = {
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "gpt-4-0125": 128_000,
    "gpt-4-1106": 128_000,
    "gpt-4-32k": 32_768,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 400_000,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "claude-3": 200_000,
    "deepseek-ai/DeepSeek-V3": 131_072,
    "deepseek-ai/DeepSeek-R1": 131_072,
    "meta-llama/Llama-3.3-70B-Instruct-Turbo": 131_072,
    "meta-llama/Meta-Llama-3.1": 131_072,
    "Qwen/Qwen2.5-Coder-32B-Instruct": 32_768,
}


def find_context_window(provider: str | None, model: str) -> int | None:
    """The window of `model` in tokens; `provider` None: a server of the user's own, which may serve anything."""
    if provider is None:
        return None
    prefixes = [name for name in WINDOWS if model == name or model.startswith(f"{name}-")]
    if prefixes:
        return WINDOWS[max(prefixes, key=len)]
    window = getattr(find_listed(provider, model), "context_window", None)
    return window if isinstance(window, int) and window > 0 else None
