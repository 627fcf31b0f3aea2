"""Every Python listing and every shell command of the documents, as printed. Names that a listing leaves undefined come
from a prelude, placeholder addresses point to a server of this machine. A table of the results is printed at the end
(pytest -s shows it)."""
import contextlib
import pathlib
import socket
import sys
import threading

import pytest

import documents
from paddle._native import native

pytestmark = pytest.mark.skipif(not documents.SPEC.is_dir(), reason=f"the documents are not here: {documents.SPEC}")

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
    train = documents.SMALL_SERVER_TRAIN if "server" in text else documents.SMALL_TRAIN
    write(tmp_path, "train.py", train)
    if "xx.xx.xx.xx" not in text:
        result = documents.run(text, tmp_path)
        if "server" in text:
            result.output += "".join(log.read_text() for log in sorted((tmp_path / "log").glob("workerlog.*")))
        check("002", text, result, ["worker 0 of "] + (["4 workers answered"] if "server" in text else []))
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
            write(folder, "train.py", train)
            results[address] = documents.run(prefix + [text], folder, environment={"FLEETX_THREADS": "1"})
            if (folder / "log").is_dir():
                results[address].output += "".join(log.read_text() for log in sorted((folder / "log").glob("workerlog.*")))
        threads = [threading.Thread(target=start, args=machine) for machine in machines.items()]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        first, second = (results[address] for address in machines)
        check("002", "; ".join(lines) + " (first of two)", first, ["worker 0 of ", "answered"])
        check("002", "; ".join(lines) + " (second of two)", second)


@pytest.mark.parametrize("servers", [0, 1])
def test_002_one_script_with_and_without_servers(tmp_path, servers):
    write(tmp_path, "train.py", documents.SMALL_SERVER_TRAIN)
    command = "fleetrun --server_num=1 --worker_num=1 train.py" if servers else "python train.py"
    result = documents.run(command, tmp_path)
    if servers:
        result.output += (tmp_path / "log" / "workerlog.0").read_text()
    check("002", f"{servers} servers, 1 worker: {command}", result, ["worker 0 of 1", "1 workers answered"])


# ---- 003: servers and workers ----
LAST_PASS = "Pass 9, cost = "


def job_003(folder, roles):
    """The listings as one script; roles take the place of the second one."""
    imports, _, network, loop = documents.listings("003")
    return write(folder, "train.py", documents.PRELUDE_003, imports, roles, network, loop)


def test_003_by_fleetrun(tmp_path):
    job_003(tmp_path, "fleet.init(PaddleCloudRoleMaker())\n")
    result = documents.run("fleetrun --server_num=2 --worker_num=3 train.py", tmp_path)
    logs = [(tmp_path / "log" / f"workerlog.{i}").read_text() for i in range(3)]
    result.output += "".join(logs)
    imports, _, network, loop = documents.listings("003")
    for listing in (imports, network, loop):
        check("003", listing, result, [LAST_PASS])
    assert all(log.count("Pass ") == 100 for log in logs), result.output[-3000:]


def test_003_roles_started_by_hand(tmp_path):
    """As printed, but for two free ports; the other processes say who they are."""
    roles = documents.listings("003")[1]
    for printed in ("127.0.0.1:6001", "127.0.0.1:6002"):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            roles = roles.replace(printed, "127.0.0.1:%d" % s.getsockname()[1])
    processes = []
    for role, count in (("WORKER", 3), ("SERVER", 2)):
        for i in range(count):
            folder = tmp_path / f"{role}{i}"
            folder.mkdir()
            own = roles.replace("current_id=0", f"current_id={i}").replace("Role.WORKER", f"Role.{role}")
            assert i > 0 or role == "SERVER" or own == roles
            processes.append((folder, job_003(folder, own)))
    results = {}
    threads = [threading.Thread(target=lambda f=folder, s=script: results.update({f.name: documents.run(PYTHON + [s], f)}))
               for folder, script in processes]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for name, result in results.items():
        check("003", f"{documents.listings('003')[1]} ({name})", result, [LAST_PASS] if "WORKER" in name else [])


# ---- 004 waits for what it is about ----
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
