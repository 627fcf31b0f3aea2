"""Attention and transformer layers on sequences [batch, length, width]."""
import numpy

from paddle._native import native
from paddle.nn import functional as F
from paddle.nn.layer.common import Dropout, LayerNorm, Linear
from paddle.nn.layer.container import LayerList
from paddle.nn.layer.layers import Layer
from paddle.tensor import creation, manipulation, math


def _mask(mask, dtype):
    """bool: False is hidden; whole numbers: 0 is hidden; floats are added to the scores."""
    if mask is None or mask.dtype == dtype:
        return mask
    return math.scale(manipulation.cast(mask, dtype), 1e9, -1e9)


def _no_cache(what, cache):
    if cache is not None:
        raise native.UnsupportedError(f"{what}: a cache of earlier steps is not here")


class MultiHeadAttention(Layer):
    def __init__(self, embed_dim, num_heads, dropout=0.0, kdim=None, vdim=None, need_weights=False, weight_attr=None,
                 bias_attr=None):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"MultiHeadAttention: embed_dim {embed_dim} must be a multiple of num_heads {num_heads}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(kdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(vdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x):
        return manipulation.transpose(manipulation.reshape(x, [0, 0, self.num_heads, self.head_dim]), [0, 2, 1, 3])

    def forward(self, query, key=None, value=None, attn_mask=None, cache=None):
        _no_cache("MultiHeadAttention", cache)
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = self._heads(self.q_proj(query)), self._heads(self.k_proj(key)), self._heads(self.v_proj(value))
        scores = math.matmul(math.scale(q, self.head_dim ** -0.5), k, transpose_y=True)
        if attn_mask is not None:
            scores = math.add(scores, _mask(attn_mask, scores.dtype))
        weights = F.softmax(scores)
        if self.dropout:
            weights = F.dropout(weights, self.dropout, training=self.training)
        out = manipulation.transpose(math.matmul(weights, v), [0, 2, 1, 3])
        out = self.out_proj(manipulation.reshape(out, [0, 0, self.embed_dim]))
        return (out, weights) if self.need_weights else out


class TransformerEncoderLayer(Layer):
    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, activation="relu", attn_dropout=None,
                 act_dropout=None, normalize_before=False, weight_attr=None, bias_attr=None):
        super().__init__()
        self._arguments = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout,
                           normalize_before, weight_attr, bias_attr)
        self.normalize_before, self._activation = normalize_before, activation
        self.self_attn = MultiHeadAttention(d_model, nhead, dropout if attn_dropout is None else attn_dropout,
                                            weight_attr=weight_attr, bias_attr=bias_attr)
        self.linear1 = Linear(d_model, dim_feedforward, weight_attr, bias_attr)
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weight_attr, bias_attr)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)

    def _feed_forward(self, x):
        return self.linear2(self.dropout(F.activation.by_name(self.linear1(x), self._activation)))

    def _part(self, x, function, dropout, norm):
        out = dropout(function(norm(x) if self.normalize_before else x))
        out = math.add(x, out)
        return out if self.normalize_before else norm(out)

    def forward(self, src, src_mask=None, cache=None):
        _no_cache(type(self).__name__, cache)
        src = self._part(src, lambda x: self.self_attn(x, x, x, src_mask), self.dropout1, self.norm1)
        return self._part(src, self._feed_forward, self.dropout2, self.norm2)


class TransformerDecoderLayer(TransformerEncoderLayer):
    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, activation="relu", attn_dropout=None,
                 act_dropout=None, normalize_before=False, weight_attr=None, bias_attr=None):
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout,
                         normalize_before, weight_attr, bias_attr)
        self.cross_attn = MultiHeadAttention(d_model, nhead, dropout if attn_dropout is None else attn_dropout,
                                             weight_attr=weight_attr, bias_attr=bias_attr)
        self.norm3, self.dropout3 = LayerNorm(d_model), Dropout(dropout)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, cache=None):
        _no_cache(type(self).__name__, cache)
        tgt = self._part(tgt, lambda x: self.self_attn(x, x, x, tgt_mask), self.dropout1, self.norm1)
        tgt = self._part(tgt, lambda x: self.cross_attn(x, memory, memory, memory_mask), self.dropout2, self.norm2)
        return self._part(tgt, self._feed_forward, self.dropout3, self.norm3)


class _Stack(Layer):
    def __init__(self, layer, num_layers, norm=None):
        super().__init__()
        # The first is the given one, the others are made alike, with parameters of their own.
        self.layers = LayerList([layer] + [type(layer)(*layer._arguments) for _ in range(num_layers - 1)])
        self.norm = norm

    def _finish(self, x):
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__(encoder_layer, num_layers, norm)

    def forward(self, src, src_mask=None, cache=None):
        _no_cache(type(self).__name__, cache)
        for layer in self.layers:
            src = layer(src, src_mask)
        return self._finish(src)


class TransformerDecoder(_Stack):
    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, cache=None):
        _no_cache(type(self).__name__, cache)
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask)
        return self._finish(tgt)


def _convert_param_attr_to_list(param_attr, n):
    """The attributes of n parameters, from one that all have or a list of them."""
    if isinstance(param_attr, (list, tuple)):
        if len(param_attr) != n:
            raise ValueError(f"param_attr has {len(param_attr)} elements, {n} are needed")
        return list(param_attr)
    return [param_attr] * n


class Transformer(Layer):
    """An encoder and a decoder."""

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1,
                 activation="relu", attn_dropout=None, act_dropout=None, normalize_before=False, weight_attr=None,
                 bias_attr=None, custom_encoder=None, custom_decoder=None):
        super().__init__()
        if isinstance(weight_attr, (list, tuple)) or isinstance(bias_attr, (list, tuple)):
            raise native.UnsupportedError("Transformer: weight_attr and bias_attr are those of all parameters here, not lists")
        self.d_model, self.nhead = d_model, nhead
        options = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before, weight_attr,
                   bias_attr)

        def stack(kind, layer, count):
            return kind(layer(*options), count, LayerNorm(d_model) if normalize_before else None)
        self.encoder = custom_encoder if custom_encoder is not None else \
            stack(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        self.decoder = custom_decoder if custom_decoder is not None else \
            stack(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None):
        return self.decoder(tgt, self.encoder(src, src_mask), tgt_mask, memory_mask)

    def generate_square_subsequent_mask(self, length):
        """[length, length]: minus infinity above the diagonal."""
        return creation.triu(creation.full([length, length], -numpy.inf), 1)
