"""CPUTrainer and CPUDatasetTrainer, with servers and alone."""
import gzip
import importlib.util
import pathlib
import re
import sys

import pytest

import fleetx as X
import paddle
from event_files import scalars
from paddle._native import native

ROOT = pathlib.Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("documents", ROOT / "tests" / "python" / "paddle" / "documents.py")
documents = importlib.util.module_from_spec(spec)
spec.loader.exec_module(documents)

TRAIN = '''
import sys
import fleetx as X
import paddle
from paddle.distributed import fleet
kind, mode = sys.argv[1:3]
fleet.init()
model = X.applications.MultiSlotCTR(sparse_feature_dim=1001, embedding_size=4, hidden=[8])
strategy = fleet.DistributedStrategy()
strategy.a_sync = mode == "async"
fleet.distributed_optimizer(paddle.optimizer.SGD(0.01), strategy).minimize(model.loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    options = {"val_dataloader": model.load_criteo_from_file("data/part-0"), "save_path": "saved"} if sys.argv[3:] else {}
    loader = model.load_criteo_from_file("data", batch_size=10)
    getattr(X, kind)(log_dir="runs").fit(model, loader, epoch=2, **options)
'''
NUMBER = r"\d+\.\d{6}"
STEP = rf"worker_index: %d, step(\d+), train_loss: {NUMBER}, total time cost = {NUMBER}, step per second: {NUMBER}, " \
       rf"speed: {NUMBER}\n"
VALIDATION = r"worker_index: %d, validation of 150 samples: loss: \d\.\d{5}, auc: (\d\.\d{5})\n"


def run(folder, workers, *arguments, files=(150, 130)):
    """[what each worker printed]"""
    (folder / "train.py").write_text(TRAIN)
    (folder / "data").mkdir()
    for i, lines in enumerate(files):
        (folder / "data" / f"part-{i}").write_text("".join(
            "\t".join(map(str, [n % 2, *range(13), *["ab"[n % 2]] * 26])) + "\n" for n in range(lines)))
    command = f"fleetrun --server_num=1 --worker_num={workers} train.py" if workers else f"{sys.executable} train.py"
    result = documents.run(f"{command} {' '.join(arguments)}", folder, timeout=120, environment={"OMP_NUM_THREADS": "1"})
    assert result.code == 0, result.output
    return [(folder / "log" / f"workerlog.{i}").read_text() for i in range(workers)] or [result.output]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_line_per_step(tmp_path, workers):
    for i, log in enumerate(run(tmp_path, workers, "CPUTrainer", "async")):
        steps = [int(s) for s in re.findall(STEP % i, log)]
        assert steps == 2 * list(range(11, [15, 13][i] if workers else 28)), log


@pytest.mark.parametrize("workers", [0, 2])
def test_lines_per_second_of_a_pass(tmp_path, workers):
    for i, log in enumerate(run(tmp_path, workers, "CPUDatasetTrainer", "async")):
        for number, lines in enumerate([150, 130]):
            assert (f"part-{number} has {lines} line\n" in log) == (not workers or number == i), log
        assert f"Total lines: {[150, 130][i] if workers else 280}\n" in log
        assert re.findall(rf"epoch: (\d) finished, speed: {NUMBER} samples/s\n", log) == ["0", "1"], log
        assert len(re.findall(r"batch 0: mean_\d.tmp_0=\[", log)) == 2, log


@pytest.mark.parametrize("kind", ["CPUTrainer", "CPUDatasetTrainer"])
@pytest.mark.parametrize("workers, mode", [(0, "async"), (2, "sync"), (2, "async")])
def test_validation_and_saves_after_a_pass(tmp_path, kind, workers, mode):
    """The workers have 15 and 13 batches: where they wait for each other, both end after 13."""
    for i, log in enumerate(run(tmp_path, workers, kind, mode, "val")):
        assert len(re.findall(VALIDATION % i, log)) == 2, log
        left_out = mode == "sync" and i == 0
        assert ("2 of this one are left out" in log) == left_out, log
        steps = [int(s) for s in re.findall(STEP % i, log)]
        if kind == "CPUTrainer":
            assert steps == 2 * list(range(11, 28 if not workers else 13 if mode == "sync" or i else 15)), log
    for number in range(2):
        assert (tmp_path / "saved" / f"epoch_{number}" / "fc_0.w_0").exists()


def test_validation_leaves_the_auc_of_training_alone(tmp_path):
    line = "1\t" + "\t".join(["1"] * 13) + "\t" + "\t".join(["a"] * 26) + "\n"
    (tmp_path / "part-0").write_text(line + "0" + line[1:])
    paddle.distributed.fleet.init()
    model = X.applications.WideDeep(sparse_feature_dim=101, embedding_size=2, hidden=[2])
    paddle.distributed.fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(model.loss)
    loader = model.load_criteo_from_file(tmp_path)
    trainer = X.CPUTrainer()
    trainer.fit(model, loader, epoch=3)

    def value(name):
        return paddle.static.global_scope().find_var(name).get_tensor().numpy().copy()

    def counts():
        return [value(s.name).sum() for s in model.auc_states]
    assert counts() == [1, 1]  # of the last pass
    before = value("SparseFeatFactors")
    assert set(trainer.val(model, loader)) == {"loss", "auc"} and counts() == [1, 1]
    assert (value("SparseFeatFactors") == before).all()
    with pytest.raises(native.InvalidArgumentError, match="unknown target 'acc1'; the model has auc"):
        trainer.val(model, loader, ["acc1"])


def test_samples_of_packed_files_are_counted(tmp_path, capsys):
    with gzip.open(tmp_path / "a.gz", "wt") as file:
        file.write("1 0.5 1 3 1 1\n" * 7)
    paddle.distributed.fleet.init()
    model = X.applications.WideDeep(10, 2, [2], dense_feature_dim=1, slot_num=1)
    paddle.distributed.fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(model.loss)
    loader = model.load_multislot_from_file(tmp_path / "a.gz", batch_size=2)
    X.CPUDatasetTrainer().fit(model, loader)
    assert "Total lines: 7\n" in capsys.readouterr().out
    with pytest.raises(native.UnsupportedError, match="words of packed and binary files are not counted"):
        X.CPUDatasetTrainer(calc_line=False).fit(model, loader)


def test_words_and_lines_are_counted(tmp_path, capsys):
    (tmp_path / "a").write_text("1 2 3\n4 5\n")
    (tmp_path / "b").write_text("6\n")
    trainer, names = X.CPUDatasetTrainer(calc_line=False), [str(tmp_path / "a"), str(tmp_path / "b")]
    assert trainer.get_total_words(names) == 6 and trainer.get_total_lines(names) == 3
    assert f"file: {names[0]} has 5 words\nfile: {names[1]} has 1 words\nTotal words: 6\n" in capsys.readouterr().out


@pytest.mark.parametrize("kind, workers", [("CPUTrainer", 0), ("CPUTrainer", 2), ("CPUDatasetTrainer", 0)])
def test_scalars_for_tensorboard(tmp_path, kind, workers):
    """One file, by worker 0."""
    logs = run(tmp_path, workers, kind, "async", "val")
    found = scalars(tmp_path / "runs")
    losses = [step for tag, step, _ in found if tag == "train/loss"]
    assert losses == [*range(1, len(losses) + 1)] and bool(losses) == (kind == "CPUTrainer")
    said = [float(auc) for auc in re.findall(VALIDATION % 0, logs[0])]
    assert [value for tag, _, value in found if tag == "val/auc"] == [pytest.approx(auc, abs=1e-5) for auc in said]
    assert len(said) == 2 and sum(tag == "val/loss" for tag, _, _ in found) == 2
