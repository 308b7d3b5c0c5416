"""How long the prompts of well-known models may be, in tokens. Pure.

See ``docs/architecture.md``, "Token budget". What makers say of their models, prompt and answer
together; where an offer has less than the model itself, a provider's refusal tells it.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

DEFAULT_WINDOW_TOKENS = 128_000

_K = 1_024

WINDOWS: Mapping[str, int] = {
    # OpenAI
    "gpt-5": 400_000,
    "gpt-5-chat": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.5": 128_000,
    "gpt-4o": 128_000,
    "chatgpt-4o": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4-1106": 128_000,
    "gpt-4-0125": 128_000,
    "gpt-4": 8_192,
    "gpt-3.5-turbo": 16_385,
    "gpt-3.5-turbo-instruct": 4_096,
    "gpt-oss": 128 * _K,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-preview": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    # Anthropic
    "claude": 200_000,
    "claude-2.0": 100_000,
    "claude-instant": 100_000,
    # Google
    "gemini": 1_048_576,
    "gemini-1.5-pro": 2_097_152,
    "gemini-1.0": 32_768,
    "gemini-pro": 32_768,
    "gemma-3": 128 * _K,
    "gemma3": 128 * _K,
    "gemma-3-1b": 32 * _K,
    "gemma3:1b": 32 * _K,
    "gemma-3n": 32 * _K,
    "gemma-2": 8 * _K,
    "gemma2": 8 * _K,
    "gemma": 8 * _K,
    # DeepSeek
    "deepseek": 128 * _K,
    "deepseek-coder": 16 * _K,
    "deepseek-coder-v2": 128 * _K,
    "deepseek-llm": 4 * _K,
    "deepseek-vl2": 4 * _K,
    # Qwen
    "qwen-turbo": 128 * _K,
    "qwen-plus": 128 * _K,
    "qwen-flash": 1_000_000,
    "qwen-max": 32 * _K,
    "qwen-long": 1_000_000,
    "qwen-vl": 32 * _K,
    "qwen-vl-max": 128 * _K,
    "qwen-vl-plus": 128 * _K,
    "qwen3": 128 * _K,
    "qwen3-0.6b": 32 * _K,
    "qwen3-1.7b": 32 * _K,
    "qwen3-4b": 32 * _K,
    "qwen3-max": 256 * _K,
    "qwen3-coder": 256 * _K,
    "qwen3-next": 256 * _K,
    "qwen3-vl": 256 * _K,
    "qwen2.5": 32 * _K,
    "qwen2.5-vl": 128 * _K,
    "qwen2": 32 * _K,
    "qwen1.5": 32 * _K,
    "qwq": 128 * _K,
    "qvq": 128 * _K,
    # Zhipu
    "glm-5": 200_000,
    "glm-4.7": 200_000,
    "glm-4.6": 200_000,
    "glm-4.6v": 128 * _K,
    "glm-4.5": 128 * _K,
    "glm-4.5v": 64 * _K,
    "glm-4-long": 1_000_000,
    "glm-4v": 8 * _K,
    "glm-4": 128 * _K,
    "glm-z1": 32 * _K,
    "chatglm3": 8 * _K,
    # Moonshot
    "kimi-k2": 128 * _K,
    "kimi-k2-0905": 256 * _K,
    "kimi-k2-thinking": 256 * _K,
    "kimi-k2-turbo": 256 * _K,
    "kimi-k2.5": 256 * _K,
    "kimi-latest": 128 * _K,
    "moonshot-v1-auto": 128 * _K,
    # ByteDance
    "doubao-seed": 256 * _K,
    "doubao-1.5": 32 * _K,
    "doubao-1-5": 32 * _K,
    # MiniMax
    "minimax-m2": 204_800,
    "minimax-m1": 1_000_000,
    "minimax-text-01": 1_000_000,
    "abab6.5": 8 * _K,
    "abab6.5s": 245_760,
    # Tencent, Baidu, 01.AI, Baichuan, StepFun, iFlytek, Shanghai AI Laboratory
    "hunyuan": 32 * _K,
    "hunyuan-lite": 256_000,
    "ernie-4.5": 128 * _K,
    "ernie-5": 128 * _K,
    "ernie-x1": 32 * _K,
    "ernie": 8 * _K,
    "yi-lightning": 16 * _K,
    "yi-large": 32 * _K,
    "yi-34b": 4 * _K,
    "yi-1.5": 4 * _K,
    "baichuan": 32 * _K,
    "step-3": 64 * _K,
    "4.0ultra": 8 * _K,
    "generalv3.5": 8 * _K,
    "internlm3": 32 * _K,
    "internlm2.5": 32 * _K,
    # Meta
    "llama-4-scout": 10 * _K * _K,
    "llama-4": 1_048_576,
    "llama4": 1_048_576,
    "llama-3.1": 128 * _K,
    "llama-3.2": 128 * _K,
    "llama-3.3": 128 * _K,
    "llama3.1": 128 * _K,
    "llama3.2": 128 * _K,
    "llama3.3": 128 * _K,
    "llama-3": 8 * _K,
    "llama3": 8 * _K,
    "meta-llama-3.1": 128 * _K,
    "meta-llama-3": 8 * _K,
    "llama-2": 4 * _K,
    "llama2": 4 * _K,
    # Mistral
    "mistral": 128 * _K,
    "mistral-7b": 32 * _K,
    "mistral:7b": 32 * _K,
    "mistral-tiny": 32 * _K,
    "mixtral": 32 * _K,
    "mixtral-8x22b": 64 * _K,
    "open-mixtral-8x22b": 64 * _K,
    "ministral": 128 * _K,
    "magistral": 40_000,
    "devstral": 128 * _K,
    "codestral": 32 * _K,
    "pixtral": 128 * _K,
    # xAI, Cohere, Microsoft, Amazon
    "grok": 128 * _K,
    "grok-4": 256_000,
    "grok-4-fast": 2_000_000,
    "grok-4-1-fast": 2_000_000,
    "grok-4.1-fast": 2_000_000,
    "grok-code-fast": 256_000,
    "command-r": 128_000,
    "command-a": 256_000,
    "phi-4": 16 * _K,
    "phi4": 16 * _K,
    "phi-3": 4 * _K,
    "nova-micro": 128_000,
    "nova-lite": 300_000,
    "nova-pro": 300_000,
    "nova-premier": 1_000_000,
}
"""By the beginning of a name, in lower case; the longest beginning that fits is meant."""

_TOLD_SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,4})([km])(?![a-z0-9])")
_LEAST_TOLD_K = 4


def window_tokens(model: str, own: Mapping[str, int]) -> int:
    """Return how many tokens a model's prompt and answer may have together.

    Args:
        model: its name, as an endpoint calls it: ``gpt-4o-mini``, ``Qwen/Qwen3-8B``,
            ``models/gemini-2.5-pro``, ``deepseek/deepseek-chat:free``.
        own: what the operator says, ``modelWindows``; goes first.
    """
    return own.get(model) or _known(model)


@lru_cache(maxsize=256)
def _known(model: str) -> int:
    name = model.lower().rpartition("/")[2]
    if told := _told_size(name):
        return told
    fitting = (known for known in WINDOWS if name.startswith(known))
    longest = max(fitting, key=len, default="")
    return WINDOWS.get(longest, DEFAULT_WINDOW_TOKENS)


def _told_size(name: str) -> int:
    """Return the size that a name itself tells, as ``moonshot-v1-32k`` does; 0 if it tells none."""
    sizes = [
        int(digits) * (_K if unit == "k" else _K * _K) for digits, unit in _TOLD_SIZE.findall(name)
    ]
    return max((size for size in sizes if size >= _LEAST_TOLD_K * _K), default=0)
