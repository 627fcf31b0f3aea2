"""The workloads as a user of PaddlePaddle would write them: paddle.nn, f32, no dropout.

A workload is (feed, loss, optimizer, items per step), built in the default static program. The networks, sizes and
update rules are those of `fleetx bench`.
"""
import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

RANDOM = np.random.default_rng(1)


class Bottleneck(nn.Layer):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.a = conv_bn(channels, width, 1)
        self.b = conv_bn(width, width, 3, stride)
        self.c = conv_bn(width, 4 * width, 1)
        self.shortcut = None
        if stride != 1 or channels != 4 * width:
            self.shortcut = conv_bn(channels, 4 * width, 1, stride)

    def forward(self, x):
        y = self.c(F.relu(self.b(F.relu(self.a(x)))))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


def conv_bn(channels, filters, kernel, stride=1):
    return nn.Sequential(nn.Conv2D(channels, filters, kernel, stride, kernel // 2, bias_attr=False),
                         nn.BatchNorm2D(filters))


def resnet50_network():
    layers = [conv_bn(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2D(3, 2, 1)]
    channels = 64
    for stage, blocks in enumerate([3, 4, 6, 3]):
        for block in range(blocks):
            layers.append(Bottleneck(channels, 64 << stage, 2 if stage > 0 and block == 0 else 1))
            channels = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(channels, 1000))


def vgg16_network():
    layers, channels = [], 3
    for convolutions, filters in [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)]:
        for _ in range(convolutions):
            layers += [nn.Conv2D(channels, filters, 3, padding=1), nn.ReLU()]
            channels = filters
        layers.append(nn.MaxPool2D(2, 2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Linear(4096, 4096),
                         nn.ReLU(), nn.Linear(4096, 1000))


class EncoderLayer(nn.Layer):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = linear(hidden, 3 * hidden), linear(hidden, hidden)
        self.up, self.down = linear(hidden, intermediate), linear(intermediate, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(hidden, 1e-12), nn.LayerNorm(hidden, 1e-12)

    def forward(self, x):
        length, hidden = x.shape[1:]
        q, k, v = self.qkv(x).reshape([-1, length, 3, self.heads, hidden // self.heads]).transpose(
            [2, 0, 3, 1, 4]).unbind(0)
        weights = F.softmax(paddle.matmul(q * (hidden // self.heads) ** -0.5, k, transpose_y=True))
        attended = paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape([-1, length, hidden])
        x = self.norm1(x + self.out(attended))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, weight_attr=bert_weights())


def bert_weights():
    return paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, 0.02))


class Data:
    """Declares inputs and holds what is fed."""

    def __init__(self):
        self.feed = {}

    def add(self, name, values):
        self.feed[name] = values
        return paddle.static.data(name, values.shape, str(values.dtype))

    def normal(self, name, *shape):
        return self.add(name, RANDOM.standard_normal(shape, dtype=np.float32))

    def integers(self, name, below, *shape):
        return self.add(name, RANDOM.integers(below, size=shape))


def images(network, lr, l2=None):
    def build(batch):
        data = Data()
        logits = network()(data.normal("image", batch, 3, 224, 224))
        return data.feed, F.cross_entropy(logits, data.integers("label", 1000, batch, 1)), momentum(lr, l2), batch
    return build


def mlp(inputs, hidden):
    def build(batch):
        data = Data()
        net = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                            nn.Linear(hidden, 10))
        logits = net(data.normal("x", batch, inputs))
        return data.feed, F.cross_entropy(logits, data.integers("label", 10, batch, 1)), momentum(0.01), batch
    return build


def bert(batch, length=128, masked=20, hidden=768, vocabulary=30522):
    data = Data()
    words = nn.Embedding(vocabulary, hidden, weight_attr=bert_weights())
    sentences = nn.Embedding(2, hidden, weight_attr=bert_weights())
    positions = paddle.create_parameter([512, hidden], "float32", attr=bert_weights())
    x = words(data.integers("words", vocabulary, batch, length)) + positions[:length] + \
        sentences(data.integers("sentences", 2, batch, length))
    x = nn.LayerNorm(hidden, 1e-12)(x)
    for _ in range(12):
        x = EncoderLayer(hidden, 12, 3072)(x)
    follows = linear(hidden, 2)(paddle.tanh(linear(hidden, hidden)(x[:, 0])))
    places = np.array([b * length + i * (length // masked) for b in range(batch) for i in range(masked)])
    y = paddle.gather(x.reshape([-1, hidden]), data.add("places", places))
    y = nn.LayerNorm(hidden, 1e-12)(F.gelu(linear(hidden, hidden)(y)))
    bias = paddle.create_parameter([vocabulary], "float32", is_bias=True)
    logits = paddle.matmul(y, words.weight, transpose_y=True) + bias
    loss = F.cross_entropy(logits, data.integers("answers", vocabulary, batch * masked, 1)) + \
        F.cross_entropy(follows, data.integers("follows", 2, batch, 1))
    return data.feed, loss, paddle.optimizer.Adam(1e-4), batch * length


def wide_deep(batch, rows=1_000_001, dim=10, slots=26, dense=13):
    data = Data()
    table = nn.Embedding(rows, dim, sparse=True, weight_attr=paddle.ParamAttr(
        initializer=nn.initializer.Uniform(-0.01, 0.01)))
    x = data.normal("dense", batch, dense)
    deep = paddle.concat([table(data.integers("ids", rows, batch, slots)).reshape([batch, slots * dim]), x], 1)
    sizes = [slots * dim + dense, 400, 400, 400]
    for a, b in zip(sizes, sizes[1:]):
        deep = F.relu(nn.Linear(a, b)(deep))
    logits = nn.Linear(400, 1)(deep) + nn.Linear(dense, 1)(x)
    label = data.add("label", RANDOM.integers(2, size=(batch, 1)).astype(np.float32))
    return data.feed, F.binary_cross_entropy_with_logits(logits, label), paddle.optimizer.SGD(0.01), batch


def momentum(lr, l2=None):
    return paddle.optimizer.Momentum(lr, 0.9, weight_decay=l2)


WORKLOADS = {
    "resnet50": images(resnet50_network, 0.01, 1e-4),
    "vgg16": images(vgg16_network, 0.001),
    "bert-base": bert,
    "mlp": mlp(784, 512),
    "tiny-mlp": mlp(64, 64),
    "wide-deep": wide_deep,
}
