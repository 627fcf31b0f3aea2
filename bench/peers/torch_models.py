"""The workloads as a user of PyTorch would write them: torch.nn only, f32, no dropout.

A workload is (network, inputs, loss, optimizer, items per step): `loss(network(*inputs))` is trained. The networks,
sizes and update rules are those of `fleetx bench`.
"""
import inspect

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += self.shortcut(x)
        return self.relu(y)


def resnet50_network():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, blocks in enumerate([3, 4, 6, 3]):
        for block in range(blocks):
            layers.append(Bottleneck(channels, 64 << stage, 2 if stage > 0 and block == 0 else 1))
            channels = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def vgg16_network():
    layers, channels = [], 3
    for convolutions, filters in [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)]:
        for _ in range(convolutions):
            layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(inplace=True)]
            channels = filters
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True),
                         nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 1000))


def classes(batch, count):
    label = torch.randint(count, (batch,))
    return lambda logits: F.cross_entropy(logits, label)


def images(network, optimizer):
    def build(batch):
        net = network()
        return net, [torch.randn(batch, 3, 224, 224)], classes(batch, 1000), optimizer(net), batch
    return build


def mlp(inputs, hidden):
    def build(batch):
        net = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                            nn.Linear(hidden, 10))
        return net, [torch.randn(batch, inputs)], classes(batch, 10), momentum(0.01)(net), batch
    return build


class EncoderLayer(nn.Module):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, intermediate), nn.Linear(intermediate, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(hidden, eps=1e-12), nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, x):
        batch, length, hidden = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, hidden)
        x = self.norm1(x + self.out(attended))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    VOCABULARY, HIDDEN = 30522, 768
    checkpoint = False  # True: backward computes every layer again

    def __init__(self):
        super().__init__()
        hidden = self.HIDDEN
        self.words, self.sentences = nn.Embedding(self.VOCABULARY, hidden), nn.Embedding(2, hidden)
        self.positions = nn.Parameter(torch.empty(512, hidden))
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.Sequential(*[EncoderLayer(hidden, 12, 3072) for _ in range(12)])
        self.pooler, self.follows = nn.Linear(hidden, hidden), nn.Linear(hidden, 2)
        self.transform, self.transform_norm = nn.Linear(hidden, hidden), nn.LayerNorm(hidden, eps=1e-12)
        self.word_bias = nn.Parameter(torch.zeros(self.VOCABULARY))
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, words, sentences, hidden_places):
        x = self.words(words) + self.sentences(sentences) + self.positions[:words.shape[1]]
        x = self.norm(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpoint else layer(x)
        follows = self.follows(torch.tanh(self.pooler(x[:, 0])))
        x = x.reshape(-1, self.HIDDEN)[hidden_places]
        x = self.transform_norm(F.gelu(self.transform(x)))
        return F.linear(x, self.words.weight, self.word_bias), follows


def bert(batch, length=128, masked=20):
    words = torch.randint(Bert.VOCABULARY, (batch, length))
    sentences = torch.randint(2, (batch, length))
    places = torch.tensor([b * length + i * (length // masked) for b in range(batch) for i in range(masked)])
    answers, follows = torch.randint(Bert.VOCABULARY, (batch * masked,)), torch.randint(2, (batch,))

    def loss(out):
        return F.cross_entropy(out[0], answers) + F.cross_entropy(out[1], follows)

    net = Bert()
    adam = torch.optim.Adam(net.parameters(), lr=1e-4, **fused(torch.optim.Adam))
    return net, [words, sentences, places], loss, adam, batch * length


class WideDeep(nn.Module):
    def __init__(self, rows=1_000_001, dim=10, slots=26, dense=13):
        super().__init__()
        self.table = nn.Embedding(rows, dim, sparse=True)
        nn.init.uniform_(self.table.weight, -0.01, 0.01)
        self.wide = nn.Linear(dense, 1)
        sizes = [slots * dim + dense, 400, 400, 400]
        layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
        self.deep = nn.Sequential(*layers, nn.Linear(400, 1))

    def forward(self, dense, ids):
        return self.deep(torch.cat([self.table(ids).flatten(1), dense], 1)) + self.wide(dense)


def wide_deep(batch):
    net = WideDeep()
    inputs = [torch.randn(batch, 13), torch.randint(1_000_001, (batch, 26))]
    label = torch.randint(2, (batch, 1)).float()
    # Only the plain update takes sparse gradients.
    return net, inputs, lambda x: F.binary_cross_entropy_with_logits(x, label), \
        torch.optim.SGD(net.parameters(), lr=0.01), batch


def fused(optimizer):
    """Its fastest way on CPUs, which older versions of PyTorch (Debian's) do not have."""
    known = "fused" in inspect.signature(optimizer).parameters and int(torch.__version__.split(".")[0]) >= 2
    return {"fused": True} if known else {}


def momentum(lr, l2=0.0):
    return lambda net: torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9, weight_decay=l2,
                                       **fused(torch.optim.SGD))


def sgemm(batch, size=2048):
    net = nn.Linear(size, size, bias=False)
    return net, [torch.randn(batch, size)], torch.mean, torch.optim.SGD(net.parameters()), 2e-9 * batch * size * size


WORKLOADS = {
    "resnet50": images(resnet50_network, momentum(0.01, 1e-4)),
    "vgg16": images(vgg16_network, momentum(0.001)),
    "bert-base": bert,
    "mlp": mlp(784, 512),
    "tiny-mlp": mlp(64, 64),
    "wide-deep": wide_deep,
    "sgemm": sgemm,
}
