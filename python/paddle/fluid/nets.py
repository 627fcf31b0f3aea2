"""Small groups of layers."""
from paddle import _refuse
from paddle.fluid import layers


def simple_img_conv_pool(input, num_filters, filter_size, pool_size, pool_stride, pool_padding=0, pool_type="max",
                         global_pooling=False, conv_stride=1, conv_padding=0, conv_dilation=1, conv_groups=1,
                         param_attr=None, bias_attr=None, act=None, use_cudnn=True):
    conv = layers.conv2d(input, num_filters, filter_size, conv_stride, conv_padding, conv_dilation, conv_groups,
                         param_attr, bias_attr, use_cudnn, act)
    return layers.pool2d(conv, pool_size, pool_type, pool_stride, pool_padding, global_pooling)


def img_conv_group(input, conv_num_filter, pool_size, conv_padding=1, conv_filter_size=3, conv_act=None, param_attr=None,
                   conv_with_batchnorm=False, conv_batchnorm_drop_rate=0.0, pool_stride=1, pool_type="max",
                   use_cudnn=True):
    def each(value):
        return value if isinstance(value, (list, tuple)) else [value] * len(conv_num_filter)

    x = input
    for filters, padding, size, norm, drop in zip(conv_num_filter, each(conv_padding), each(conv_filter_size),
                                                  each(conv_with_batchnorm), each(conv_batchnorm_drop_rate)):
        x = layers.conv2d(x, filters, size, padding=padding, param_attr=param_attr, act=None if norm else conv_act)
        if norm:
            x = layers.batch_norm(x, act=conv_act)
            if drop > 1e-5:
                x = layers.dropout(x, drop)
    return layers.pool2d(x, pool_size, pool_type, pool_stride)


def glu(input, dim=-1):
    a, b = layers.split(input, 2, dim)
    return layers.elementwise_mul(a, layers.sigmoid(b))


def sequence_conv_pool(input, num_filters, filter_size, param_attr=None, act="sigmoid", pool_type="max",
                       bias_attr=None):
    conv = layers.sequence_conv(input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act)
    return layers.sequence_pool(conv, pool_type)


def scaled_dot_product_attention(queries, keys, values, num_heads=1, dropout_rate=0.0):
    """softmax(q k^T / sqrt(width of a head)) v of [batch, steps, width]. Several heads project q, k and v first."""
    if num_heads > 1:
        queries, keys, values = (layers.fc(x, x.shape[-1], 2) for x in (queries, keys, values))

    def heads(x):
        return layers.transpose(layers.reshape(x, [0, 0, num_heads, x.shape[-1] // num_heads]), [0, 2, 1, 3])
    q, k, v = heads(queries), heads(keys), heads(values)
    weights = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=q.shape[-1] ** -0.5))
    if dropout_rate:
        weights = layers.dropout(weights, dropout_rate)
    out = layers.transpose(layers.matmul(weights, v), [0, 2, 1, 3])
    return layers.reshape(out, [0, 0, values.shape[-1]])


__getattr__ = _refuse.getter(__name__, {})
