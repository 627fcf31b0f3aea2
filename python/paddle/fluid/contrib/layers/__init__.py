"""Layers of contrib."""
from paddle import _refuse
from paddle.fluid.contrib.layers import metric_op, nn, rnn_impl  # noqa: F401
from paddle.fluid.contrib.layers.metric_op import ctr_metric_bundle  # noqa: F401
from paddle.fluid.contrib.layers.nn import (batch_fc, fused_elemwise_activation, partial_concat, partial_sum,  # noqa: F401
                                            shuffle_batch)
from paddle.fluid.contrib.layers.rnn_impl import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm  # noqa: F401
from paddle.static.nn import sparse_embedding  # noqa: F401
from paddle.tensor.manipulation import index_sample  # noqa: F401

__getattr__ = _refuse.getter(__name__, {
    "tdm_child": "gather of the rows of the tree", "tdm_sampler": "negatives of each layer of the tree from the reader", "rank_attention": "nothing",
    "multiclass_nms2": "nothing", "search_pyramid_hash": "nothing", "var_conv_2d": "nothing", "tree_conv": "nothing",
    "match_matrix_tensor": "matmul", "sequence_topk_avg_pooling": "sequence_pool", "bilateral_slice": "nothing",
    "correlation": "nothing", "fused_embedding_seq_pool": "embedding and sequence_pool"})
