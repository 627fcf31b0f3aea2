"""Listings and commands of the documents: taken out of their texts, put into scripts, run."""
import contextlib
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import textwrap
import threading
import time

SPEC = pathlib.Path(__file__).resolve().parents[3].parent / "shared" / "spec"


def blocks(text):
    """[(language, code)] of Markdown fences and of reStructuredText code blocks, in order. White space at line ends is
    trimmed."""
    fence = re.compile(r"^```[ \t]*(\w*)[ \t]*\n(.*?)^```", re.M | re.S)
    rest = re.compile(r"^([ \t]*)\.\. code-block::[ \t]*(\w*)[ \t]*\n[ \t]*\n((?:(?:\1[ \t]+[^\n]*)?\n)+)", re.M)
    found = [(m.start(), m[1], m[2]) for m in fence.finditer(text)]
    found += [(m.start(), m[2], m[3]) for m in rest.finditer(text)]
    out = []
    for _, language, code in sorted(found):
        code = textwrap.dedent("\n".join(line.rstrip() for line in code.split("\n"))).strip("\n") + "\n"
        out.append((language, code))
    return out


def load_file(path):
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.parent.name + "_" + path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_python(language, code):
    return language in ("py", "python") and not code.startswith("fleetrun")


def listings(name):
    """The Python listings of a document."""
    path, = SPEC.glob(name + "_*.txt")
    return [code for language, code in blocks(path.read_text()) if is_python(language, code)]


def commands(name):
    """[[export lines..., command]]: the shell commands of a document, with the lines that they need before them."""
    path, = SPEC.glob(name + "_*.txt")
    out = []
    for language, code in blocks(path.read_text()):
        lines = [line.strip() for line in code.split("\n")]
        lines = [line for line in lines if re.match(r"(export|python|fleetrun) ", line)]
        if not is_python(language, code) and any(not line.startswith("export") for line in lines):
            out.append(lines)
        elif language == "python" and code.startswith("fleetrun"):
            out.append([code.split("\n")[0]])
    return out


class Result:
    def __init__(self, code, output, matched, seconds):
        self.code, self.output, self.matched, self.seconds = code, output, matched, seconds


def run(command, folder, until=None, timeout=300, environment=None):
    """Runs a command in a folder. With `until`, a pattern, it is interrupted as soon as its output matches: the
    documents' trainings go on for hours."""
    started = time.time()
    full = dict(os.environ, PYTHONUNBUFFERED="1", **(environment or {}))
    process = subprocess.Popen(command, cwd=folder, env=full, shell=isinstance(command, str),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    timer_end, lines, matched = started + timeout, [], False
    timer = threading.Timer(timeout, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    try:
        for line in process.stdout:
            lines.append(line)
            if until and not matched and re.search(until, "".join(lines[-50:])):
                matched = True
                os.killpg(process.pid, signal.SIGINT)
        process.wait()
    finally:
        timer.cancel()
    if time.time() > timer_end:
        lines.append(f"(stopped after {timeout} s)\n")
    return Result(process.returncode, "".join(lines), matched, time.time() - started)


@contextlib.contextmanager
def two_machines():
    """Two network namespaces on a wire: {address: command prefix}. None where this user may not make them."""
    names = [f"fleetx-{os.getpid()}-{i}" for i in range(2)]
    addresses = ["10.77.91.1", "10.77.91.2"]
    made = []

    def ip(*words):
        return subprocess.run(["ip", *words], capture_output=True).returncode == 0
    try:
        ok = True
        for name in names:
            ok = ok and ip("netns", "add", name)
            made += [name] if ok else []
        ok = ok and ip("link", "add", "fxa", "netns", names[0], "type", "veth", "peer", "name", "fxb", "netns", names[1])
        for name, link, address in zip(names, ("fxa", "fxb"), addresses):
            inside = ("-n", name)
            ok = ok and ip(*inside, "addr", "add", address + "/24", "dev", link) and ip(*inside, "link", "set", link, "up") \
                and ip(*inside, "link", "set", "lo", "up")
        yield {a: ["ip", "netns", "exec", n, "sh", "-c"] for a, n in zip(addresses, names)} if ok else None
    finally:
        for name in made:
            ip("netns", "delete", name)


PRELUDE_001 = '''
import math, os
import numpy as np
import paddle
import paddle.fluid as fluid

class_dim = 102


class resnet:
    class ResNet:
        def __init__(self, layers=50):
            self.layers = layers

        def conv_bn(self, x, filters, size, stride=1, act=None):
            x = fluid.layers.conv2d(x, filters, size, stride, (size - 1) // 2, bias_attr=False)
            return fluid.layers.batch_norm(x, act=act)

        def block(self, x, filters, stride):
            y = self.conv_bn(self.conv_bn(x, filters, 1, act="relu"), filters, 3, stride, "relu")
            y = self.conv_bn(y, filters * 4, 1)
            if x.shape[1] != filters * 4 or stride != 1:
                x = self.conv_bn(x, filters * 4, 1, stride)
            return fluid.layers.elementwise_add(x, y, act="relu")

        def net(self, input, class_dim=1000):
            x = fluid.layers.pool2d(self.conv_bn(input, 64, 7, 2, "relu"), 3, "max", 2, 1)
            for stage, depth in enumerate([3, 4, 6, 3]):
                for i in range(depth):
                    x = self.block(x, 64 * 2 ** stage, 2 if i == 0 and stage else 1)
            x = fluid.layers.pool2d(x, pool_type="avg", global_pooling=True)
            bound = 1.0 / math.sqrt(x.shape[1])
            return fluid.layers.fc(x, class_dim, param_attr=fluid.ParamAttr(
                initializer=fluid.initializer.Uniform(-bound, bound)))


def optimizer_setting(parameter_list=None):
    return paddle.optimizer.Momentum(learning_rate=0.01, momentum=0.9, weight_decay=paddle.regularizer.L2Decay(1e-4),
                                     parameters=parameter_list)


def get_train_loader(feed_list, place):
    """A batch of two flowers per epoch."""
    def shaped():
        for image, label in paddle.reader.firstn(paddle.dataset.flowers.train(use_xmap=True), 2)():
            yield image.reshape(3, 224, 224), np.array([label], "int64")
    loader = paddle.io.DataLoader.from_generator(capacity=32, use_double_buffer=True, feed_list=feed_list, iterable=True)
    loader.set_sample_list_generator(paddle.batch(shaped, batch_size=2, drop_last=True), place)
    return loader


'''

# A program that trains something small and says who it is.
SMALL_TRAIN = '''
import numpy as np
import paddle
from paddle.distributed import fleet

paddle.enable_static()
x = paddle.static.data("x", [None, 4], "float32")
loss = paddle.mean(paddle.static.nn.fc(x, 2))
fleet.init(is_collective=True)
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
exe = paddle.static.Executor(paddle.CUDAPlace(0))
exe.run(paddle.static.default_startup_program())
value, = exe.run(feed={"x": np.full((2, 4), fleet.worker_index() + 1.0, "float32")}, fetch_list=[loss])
total = fleet.util.all_reduce(1)
print("worker %d of %d: loss %f, %d workers answered" % (fleet.worker_index(), fleet.worker_num(), value, total))
'''

# The same with servers, where the job has some.
SMALL_SERVER_TRAIN = '''
import numpy as np
import paddle
from paddle.distributed import fleet

paddle.enable_static()
fleet.init()
ids, y = paddle.static.data("ids", [None, 1], "int64"), paddle.static.data("y", [None, 1], "float32")
row = paddle.reshape(paddle.static.nn.embedding(ids, [50, 4], is_sparse=True), [-1, 4])
loss = paddle.mean(paddle.square(paddle.static.nn.fc(row, 1) - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = False
fleet.distributed_optimizer(paddle.optimizer.Adam(0.05), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    if fleet.server_num() > 0:
        fleet.init_worker()
    losses = []
    for step in range(40):
        some = np.random.RandomState(step).randint(0, 50, (8, 1))
        losses.append(float(exe.run(feed={"ids": some, "y": (some % 3).astype("float32")}, fetch_list=[loss])[0]))
    assert losses[-1] < 0.5 * losses[0], losses
    total = fleet.util.all_reduce(1)
    print("worker %d of %d: loss %f, %d workers answered" % (fleet.worker_index(), fleet.worker_num(), losses[-1], total))
    if fleet.server_num() > 0:
        fleet.stop_worker()
'''

# What document 003 leaves open: the network, its data, and where it runs.
PRELUDE_003 = '''
import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig

paddle.enable_static()
place = fluid.CPUPlace()
exe = fluid.Executor(place)


def model():
    global x, y, auc, auc_batch
    x, y = fluid.data("x", [None, 1], "int64"), fluid.data("y", [None, 1], "int64")
    row = fluid.layers.reshape(fluid.layers.embedding(x, [200, 8], is_sparse=True), [-1, 8])
    predict = fluid.layers.fc(fluid.layers.fc(row, 1100, act="relu"), 2, act="softmax")
    auc, auc_batch, _ = fluid.layers.auc(predict, y)
    return fluid.layers.mean(fluid.layers.cross_entropy(predict, y))


def fake_reader():
    def reader():
        for i in np.random.RandomState(fleet.worker_index()).randint(0, 200, 240):
            yield [i], [int(i % 3 == 0)]
    return reader


'''
