"""Repeats in PyTorch what parity_runner did, from the same weights and data, and compares.

usage: parity.py RUNNER resnet50|bert

Loss and every gradient of step 1 within 1e-4, losses of 10 steps within 1e-3, relative. PyTorch
computes in f64, so that the difference is FleetX's own. Exit code 77 where torch is not installed.
"""
import json
import math
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("SKIPPED: torch is not installed (bench/setup-peers.sh installs it)")
    sys.exit(SKIPPED)

STEPS = 10
DTYPES = {"F32": torch.float32, "I64": torch.int64}


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata


def conv_bn(x, w, name, stride=1):
    kernel = w[f"{name}.w_0"]
    x = F.conv2d(x, kernel, stride=stride, padding=(kernel.shape[2] - 1) // 2)
    return F.batch_norm(x, None, None, w[f"{name}_bn.w_0"], w[f"{name}_bn.b_0"], training=True, eps=1e-5)


def resnet50(w, feeds):
    x = F.relu(conv_bn(feeds["image"], w, "conv1", stride=2))
    x = F.max_pool2d(x, 3, stride=2, padding=1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            name, stride = f"res{stage + 2}_{block}", 2 if stage and not block else 1
            y = F.relu(conv_bn(x, w, f"{name}_branch2a"))
            y = F.relu(conv_bn(y, w, f"{name}_branch2b", stride))
            y = conv_bn(y, w, f"{name}_branch2c")
            x = F.relu(y + (conv_bn(x, w, f"{name}_branch1", stride) if block == 0 else x))
    logits = linear(x.mean((2, 3)), w, "fc")
    return F.cross_entropy(logits, feeds["label"].flatten())


def linear(x, w, name):
    return x @ w[f"{name}.w_0"] + w[f"{name}.b_0"]


def layer_norm(x, w, name):
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.w_0"], w[f"{name}.b_0"], eps=1e-12)


def attention(x, mask, w, name, heads=4):
    batch, length, hidden = x.shape

    def part(which):
        return linear(x, w, f"{name}_{which}").reshape(batch, length, heads, -1).transpose(1, 2)

    scores = part("query") @ part("key").transpose(2, 3) / math.sqrt(hidden // heads)
    context = torch.softmax(scores + mask, -1) @ part("value")
    return linear(context.transpose(1, 2).reshape(x.shape), w, f"{name}_output")


def bert(w, feeds):
    words = w["word_embedding.w_0"]
    length = feeds["words"].shape[1]
    x = (words[feeds["words"]] + w["sentence_embedding.w_0"][feeds["sentences"]]
         + w["position_embedding.w_0"][:length])
    x = layer_norm(x, w, "embedding_norm")
    for i in range(2):
        name = f"encoder_{i}"
        x = layer_norm(x + attention(x, feeds["mask"], w, f"{name}_attention"), w, f"{name}_norm_0")
        wide = F.gelu(linear(x, w, f"{name}_ffn_0"))
        x = layer_norm(x + linear(wide, w, f"{name}_ffn_1"), w, f"{name}_norm_1")
    rows = x.reshape(-1, x.shape[2])[feeds["positions"]]
    rows = layer_norm(F.gelu(linear(rows, w, "word_transform")), w, "word_transform_norm")
    word_logits = rows @ words.T + w["word_output.b_0"]
    pooled = torch.tanh(linear(x[:, 0], w, "pooler"))
    return (F.cross_entropy(word_logits, feeds["hidden_words"].flatten())
            + F.cross_entropy(linear(pooled, w, "sentence_output"), feeds["follows"].flatten()))


def part_of(tensors, prefix):
    return {name[len(prefix):]: tensor.double() if tensor.is_floating_point() else tensor
            for name, tensor in tensors.items() if name.startswith(prefix)}


def main():
    runner, model = sys.argv[1:]
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        subprocess.run([runner, model, file.name, str(STEPS)], check=True)
        tensors, metadata = load(file.name)
    weights, feeds = part_of(tensors, "weights/"), part_of(tensors, "feeds/")
    ours, losses = part_of(tensors, "grads/"), tensors["losses"].tolist()
    rate, mu = float(metadata["lr"]), float(metadata["momentum"])

    velocity = {name: torch.zeros_like(w) for name, w in weights.items()}
    worst_grad, worst_loss = (0.0, ""), 0.0
    for step in range(STEPS):
        for w in weights.values():
            w.requires_grad_().grad = None
        loss = {"resnet50": resnet50, "bert": bert}[model](weights, feeds)
        loss.backward()
        error = abs(losses[step] - loss.item()) / abs(loss.item())
        worst_loss = max(worst_loss, error)
        if step == 0:
            first_loss = error
            # Some gradients are zero but for rounding (a bias of the keys does not change the
            # softmax): they are judged by the size of all.
            scale = math.sqrt(sum(w.grad.square().sum().item() for w in weights.values()))
            for name, w in weights.items():
                size = max(w.grad.norm().item(), 1e-4 * scale)
                worst_grad = max(worst_grad, ((ours[name] - w.grad).norm().item() / size, name))
        with torch.no_grad():
            for name, w in weights.items():
                velocity[name] = mu * velocity[name] + w.grad
                w -= rate * velocity[name]
        print(f"step {step + 1}: loss {losses[step]:.6f}, PyTorch {loss.item():.6f}, off by {error:.1e}")
    print(f"{model}: {len(weights)} parameters; step 1: loss off by {first_loss:.1e}, worst gradient by "
          f"{worst_grad[0]:.1e} ({worst_grad[1]}); worst of {STEPS} losses off by {worst_loss:.1e}")
    return 0 if first_loss <= 1e-4 and worst_grad[0] <= 1e-4 and worst_loss <= 1e-3 else 1


sys.exit(main())
