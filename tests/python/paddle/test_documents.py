"""Every Python listing and every shell command of the documents, as printed. Names that a listing leaves undefined come
from a prelude, placeholder addresses point to a server of this machine. A table of the results is printed at the end
(pytest -s shows it)."""
import contextlib
import pathlib
import sys
import threading

import pytest

import documents
from paddle._native import native

pytestmark = pytest.mark.skipif(not documents.SPEC.is_dir(), reason=f"the documents are not here: {documents.SPEC}")

SERVERS = "waits for parameter servers"
STRATEGIES = "waits for strategies"
TABLE = []


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    print("\n\n%-8s %-66s %-8s %s" % ("document", "what", "seconds", "result"))
    for row in TABLE:
        print("%-8s %-66s %-8s %s" % row)


def record(document, what, result):
    seconds = "" if isinstance(result, str) else "%.1f" % result.seconds
    words = result if isinstance(result, str) else ("ran" if result.code == 0 else "ran until it was stopped")
    TABLE.append((document, what.replace("\n", " ")[:66], seconds, words))


def check(document, what, result, expected=()):
    """An exit code of 0, or stopped by us while all was well."""
    ok = (result.code == 0 or result.matched) and all(word in result.output for word in expected)
    record(document, what, result if ok else "FAILED")
    assert ok, f"{what}\n{result.output[-6000:]}"


def waits(document, what, reason):
    record(document, what, reason)
    pytest.skip(f"{document}: {what}: {reason}")


@pytest.fixture(scope="module")
def serve_pictures(tmp_path_factory):
    """Starts a server with so many pictures under the names that the documents use; FLEETX_MIRROR points to it."""
    fleetx_tests = documents.load_file(pathlib.Path(__file__).resolve().parents[1] / "fleetx" / "conftest.py")
    with contextlib.ExitStack() as servers, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))

        def start(pictures):
            root = tmp_path_factory.mktemp("server")
            flowers = pathlib.Path(native.cached_flowers(classes=4, train=pictures, val=10, size=64))
            fleetx_tests.pack(flowers, root / "set")
            (root / "test" / "loader").mkdir(parents=True)
            (root / "full_imagenet_bos.yml").write_text("bos_path: set\n")
            (root / "test" / "loader" / "small_imagenet.yaml").write_text("bos_path: ../../set\n")
            return {"FLEETX_MIRROR": servers.enter_context(fleetx_tests.serve(root))}
        yield start


# A step of the documents' batch size for each worker.
@pytest.fixture(scope="module")
def server(serve_pictures):
    return serve_pictures(35)


@pytest.fixture(scope="module")
def server_for_four(serve_pictures):
    return serve_pictures(140)


def write(folder, name, *parts):
    (folder / name).write_text("\n".join(parts))
    return name


PYTHON = [sys.executable]


# ---- 000: FleetX ----
PRELUDE_000 = "import paddle.fluid as fluid\nplace = fluid.CPUPlace()\n"
OPTIMIZER = "optimizer = paddle.optimizer.Momentum(learning_rate=configs.lr, momentum=configs.momentum)\n"
SECOND_PASS = r"reader shuffle seed', 1\)"


def test_000_imports(tmp_path):
    imports = documents.listings("000")[0]
    check("000", imports, documents.run(PYTHON + [write(tmp_path, "a.py", imports)], tmp_path))


def test_000_with_the_trainer(tmp_path, server):
    _, model, strategy, trainer, _ = documents.listings("000")
    script = write(tmp_path, "resnet_app.py", PRELUDE_000, model, OPTIMIZER, strategy, trainer)
    result = documents.run(PYTHON + [script], tmp_path, until=SECOND_PASS, environment=server)
    check("000", "X.applications.Resnet50, strategy, MultiGPUTrainer", result, ["read images from 0, length: 35"])


def test_000_with_a_loop(tmp_path, server):
    _, model, strategy, _, loop = documents.listings("000")
    script = write(tmp_path, "a.py", PRELUDE_000, model, OPTIMIZER, strategy, loop)
    result = documents.run(PYTHON + [script], tmp_path, until="worker index: 0, epoch: 0, step: 0, train loss: ",
                           environment=server)
    check("000", "X.applications.Resnet50, strategy, own loop", result)


def test_000_command(tmp_path, server_for_four):
    _, model, strategy, trainer, _ = documents.listings("000")
    write(tmp_path, "resnet_app.py", PRELUDE_000, model, OPTIMIZER, strategy, trainer)
    (line,), = documents.commands("000")
    result = documents.run(line, tmp_path, until=SECOND_PASS, timeout=600, environment=server_for_four)
    check("000", line, result, ["('trainerid, trainer_count', 0, 4)", "length: 35"])


# ---- 001: static graph ----
def test_001_single(tmp_path):
    listing = documents.listings("001")[0]
    script = write(tmp_path, "train_single.py", documents.PRELUDE_001, listing, "train_resnet()\n")
    result = documents.run(PYTHON + [script], tmp_path)
    check("001", "train_resnet(), one worker", result, ["[Epoch 0, batch 0] loss: ", "[Epoch 9, batch 0] loss: "])


def test_001_three_steps(tmp_path):
    _, imports, init, wrap, _ = documents.listings("001")
    script = write(tmp_path, "a.py", documents.PRELUDE_001, imports, init, "optimizer = optimizer_setting()\n", wrap)
    result = documents.run(PYTHON + [script], tmp_path)
    for listing in (imports, init, wrap):
        check("001", listing, result)


@pytest.mark.parametrize("number", [0, 1])
def test_001_commands(tmp_path, number):
    listing = documents.listings("001")[4]
    write(tmp_path, "train_fleet_static.py", documents.PRELUDE_001, listing, "train_resnet()\n")
    line, = documents.commands("001")[number]
    workers = line.count(",") + 1
    until = None if workers == 2 else r"\[Epoch 0, batch 0\] loss: "
    result = documents.run(line, tmp_path, until=until, timeout=900)
    check("001", line, result, ["Configuration Arguments", f"Local start {workers} processes", "PADDLE_TRAINER_ENDPOINTS",
                                "[Epoch 0, batch 0] loss: "] + (["all_reduce operators: 161"] if workers == 2 else []))


# ---- 002: fleetrun ----
def test_002_listing(tmp_path, server, server_for_four):
    listing, = documents.listings("002")
    for devices, start, environment in (("0", "python", server), ("0,1,2,3", "fleetrun", server_for_four)):
        folder = tmp_path / start
        folder.mkdir()
        write(folder, "res_app.py", listing)
        lines = [f"export CUDA_VISIBLE_DEVICES={devices}", f"{start} res_app.py"]
        assert lines in documents.commands("002")
        result = documents.run("; ".join(lines), folder, until=SECOND_PASS, timeout=600, environment=environment)
        check("002", "; ".join(lines), result, ["('reader shuffle seed', 0)", "('trainerid, trainer_count', 0, "])


def command_ids():
    return range(len(documents.commands("002"))) if documents.SPEC.is_dir() else []


@pytest.mark.parametrize("number", command_ids())
def test_002_commands(tmp_path, number):
    lines = documents.commands("002")[number]
    text = "; ".join(lines)
    if "res_app.py" in text:
        pytest.skip("run by test_002_listing")
    if "server" in text:
        waits("002", lines[-1], SERVERS)
    write(tmp_path, "train.py", documents.SMALL_TRAIN)
    if "xx.xx.xx.xx" not in text:
        check("002", text, documents.run(text, tmp_path), ["worker 0 of "])
        return
    with documents.two_machines() as machines:
        if machines is None:
            waits("002", text, "skipped: no network namespaces here")
        for word, address in zip(("xx.xx.xx.xx", "yy.yy.yy.yy"), machines):
            text = text.replace(word, address)
        results = {}

        def start(address, prefix):
            folder = tmp_path / address
            folder.mkdir()
            write(folder, "train.py", documents.SMALL_TRAIN)
            results[address] = documents.run(prefix + [text], folder, environment={"FLEETX_THREADS": "1"})
        threads = [threading.Thread(target=start, args=machine) for machine in machines.items()]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        first, second = (results[address] for address in machines)
        check("002", "; ".join(lines) + " (first of two)", first, ["worker 0 of ", "answered"])
        check("002", "; ".join(lines) + " (second of two)", second)


# ---- 003 and 004 wait for what they are about ----
@pytest.mark.parametrize("number", range(4))
def test_003_listings(number):
    waits("003", documents.listings("003")[number], SERVERS)


def test_004_before_the_strategies(tmp_path, server):
    imports, init, model = documents.listings("004")[:3]
    result = documents.run(PYTHON + [write(tmp_path, "a.py", imports, init, model)], tmp_path, environment=server)
    for listing in (imports, init, model):
        check("004", listing, result)


# What is not built says so; then the listing waits for it, and for nothing else.
NOT_BUILT = "UnsupportedError"
CREATE_STRATEGY = "dist_strategy = fleet.DistributedStrategy()\n"
FIRST_STEP = "worker_index: 0, step0 cost = "


def strategy_script(number):
    imports, init, model, *rest = documents.listings("004")
    return imports, init, model, CREATE_STRATEGY, rest[number], rest[1]


@pytest.mark.parametrize("number, name", [(0, "amp, recompute, lars"), (2, "auto")])
def test_004_strategies(tmp_path, server, number, name):
    script = write(tmp_path, "train.py", *strategy_script(number))
    result = documents.run(PYTHON + [script], tmp_path, until=FIRST_STEP, environment=server)
    if NOT_BUILT in result.output:
        waits("004", f"{name}, and the training loop", STRATEGIES)
    check("004", f"{name}, and the training loop", result)


@pytest.mark.parametrize("number", [0, 1])
def test_004_commands(tmp_path, serve_pictures, number):
    line, = documents.commands("004")[number]
    write(tmp_path, "train.py", *strategy_script(2 * number))
    result = documents.run(line, tmp_path, until=FIRST_STEP, timeout=600, environment=serve_pictures(280))
    if NOT_BUILT in result.output:
        waits("004", line, STRATEGIES)
    check("004", line, result)


def test_nothing_is_left_out():
    counts = {name: (len(documents.listings(name)), len(documents.commands(name))) for name in ("000", "001", "002", "003", "004")}
    assert counts == {"000": (5, 1), "001": (5, 2), "002": (1, 15), "003": (4, 0), "004": (6, 2)}
