"""Multi-head attention (Vaswani et al., arXiv 1706.03762)."""

from __future__ import annotations

import math

from gradcli.engine.creation import empty
from gradcli.engine.nn import functional, init
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.layers.basic import Linear
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor


class MultiheadAttention(Module):
    """Attention of several heads: linear projections of query, key and value, attention, and an output projection.

    Args:
        embed_dim: E, the features of queries and of the result.
        num_heads: heads; each has E / num_heads features.
        dropout: the probability with which an attention weight is dropped in training.
        bias: add biases to the projections.
        kdim: the features of keys; E unless given.
        vdim: the features of values; E unless given.
        batch_first: tensors are [N, L, E] instead of [L, N, E].

    Raises:
        ValueError: E is not divisible by num_heads.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.batch_first, self.head_dim = batch_first, embed_dim // num_heads
        same = self.kdim == embed_dim and self.vdim == embed_dim
        self.register_parameter("in_proj_weight", Parameter(empty(3 * embed_dim, embed_dim)) if same else None)
        for name, size in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            self.register_parameter(f"{name}_proj_weight", None if same else Parameter(empty(embed_dim, size)))
        self.register_parameter("in_proj_bias", Parameter(empty(3 * embed_dim)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias)
        for name, parameter in self.named_parameters():
            if "bias" in name:
                init.zeros_(parameter)
            elif "in_proj" in name or "_proj_weight" in name:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the result [L, N, E] and the weights.

        Args:
            query: [L, N, E], or [L, E] without a batch.
            key: [S, N, kdim].
            value: [S, N, vdim].
            key_padding_mask: [N, S]: True leaves a key out; or numbers to add to the scores.
            need_weights: return the weights as well, not None.
            attn_mask: [L, S] or [N num_heads, L, S]: True keeps a query from a key; or numbers to add to the scores.
            average_attn_weights: average the weights over the heads; else they are [N, num_heads, L, S].
            is_causal: a hint that `attn_mask` is causal; it has no effect.

        Returns:
            The result, and the weights [N, L, S] (or None).
        """
        del is_causal
        single = query._data.ndim == 2
        if single:
            query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        steps, batch = query._data.shape[:2]
        q, k, v = (self._heads(given, place) for place, given in enumerate((query, key, value)))
        scores = q.matmul(k.transpose(-2, -1)) / math.sqrt(self.head_dim)
        scores = _masked(scores, attn_mask, key_padding_mask, batch, self.num_heads)
        weights = scores.softmax(-1)
        weights = functional.dropout(weights, self.dropout, self.training)
        joined = weights.matmul(v).transpose(0, 1).reshape(steps, batch, self.embed_dim)
        result = self.out_proj(joined)
        shown = weights.reshape(batch, self.num_heads, steps, -1)
        shown = shown.mean(1) if average_attn_weights else shown
        if single:
            return result.squeeze(1), shown.squeeze(0) if need_weights else None
        return result.transpose(0, 1) if self.batch_first else result, shown if need_weights else None

    def _heads(self, given: Tensor, place: int) -> Tensor:
        """Return one projection as [N heads, L, features of a head]."""
        rows = slice(place * self.embed_dim, (place + 1) * self.embed_dim)
        if self.in_proj_weight is not None:
            weight = self.in_proj_weight[rows]
        else:
            weight = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[place]
        bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
        steps, batch = given._data.shape[:2]
        projected = functional.linear(given, weight, bias)
        return projected.reshape(steps, batch * self.num_heads, self.head_dim).transpose(0, 1)


def _masked(
    scores: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, batch: int, heads: int
) -> Tensor:
    if attn_mask is not None:
        scores = scores + functional.additive_mask(attn_mask, scores)
    if key_padding_mask is not None:
        addend = functional.additive_mask(key_padding_mask, scores)
        addend = addend.reshape(batch, 1, 1, -1).expand(batch, heads, 1, addend._data.shape[-1])
        scores = scores + addend.reshape(batch * heads, 1, -1)
    return scores
