"""A GGUF file of some hundred kilobytes: a llama with random weights and one token a byte, for the real code path.

With `says` it is a parrot: it says these pieces after any prompt of its chat template, and ends.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np

_BYTES = 256
_SPECIAL = ("<unk>", "<s>", "</s>")
_UNKNOWN, _BEGIN, _END = range(3)
_WIDTH, _INNER, _HEADS, _LAYERS = 32, 64, 2, 2

_LAST = ">"

CHAT_TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def write_tiny_gguf(
    path: Path,
    *,
    seed: int = 7,
    context: int = 2048,
    template: str | None = CHAT_TEMPLATE,
    says: tuple[str, ...] = (),
) -> Path:
    """Write the model and return its path: the same seed gives the same weights."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(context)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_vocabulary(writer, says)
    if template is not None:
        writer.add_chat_template(template)
    _add_weights(writer, np.random.default_rng(seed), len(says))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: gguf.GGUFWriter, says: tuple[str, ...]) -> None:
    kind = gguf.TokenType
    tokens = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(_BYTES)), *says]
    kinds = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL, *[kind.BYTE] * _BYTES, *[kind.USER_DEFINED] * len(says)]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(_UNKNOWN)
    writer.add_bos_token_id(_BEGIN)
    writer.add_eos_token_id(_END)
    writer.add_add_space_prefix(False)


def _add_weights(writer: gguf.GGUFWriter, random: np.random.Generator, said: int) -> None:
    vocabulary = len(_SPECIAL) + _BYTES + said

    def add(name: str, *shape: int, scale: float = 0.3) -> None:
        writer.add_tensor(f"{name}.weight", random.normal(0, scale, shape).astype(np.float32))

    def add_norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, dtype=np.float32))

    embedding = random.normal(0, 0.3, (vocabulary, _WIDTH)).astype(np.float32)
    writer.add_tensor("token_embd.weight", embedding)
    add_norm("output_norm")
    writer.add_tensor("output.weight", _chain(embedding, said) if said else embedding[::-1].copy())
    # Layers that add nothing leave each token to tell the next one alone.
    scale = 0.0 if said else 0.3
    for layer in range(_LAYERS):
        for part in ("attn_q", "attn_k", "attn_v"):
            add(f"blk.{layer}.{part}", _WIDTH, _WIDTH)
        add(f"blk.{layer}.attn_output", _WIDTH, _WIDTH, scale=scale)
        add(f"blk.{layer}.ffn_gate", _INNER, _WIDTH)
        add(f"blk.{layer}.ffn_up", _INNER, _WIDTH)
        add(f"blk.{layer}.ffn_down", _WIDTH, _INNER, scale=scale)
        add_norm(f"blk.{layer}.attn_norm")
        add_norm(f"blk.{layer}.ffn_norm")


def _chain(embedding: np.ndarray, said: int) -> np.ndarray:
    """Return output weights by which the prompt's last character brings the first piece, and each piece the next."""
    first = len(_SPECIAL) + _BYTES
    steps = [len(_SPECIAL) + ord(_LAST), *range(first, first + said), _END]
    output = np.zeros_like(embedding)
    for before, after in pairwise(steps):
        output[after] = 10 * embedding[before]
    return output
