"""Data sets of text files, data generators, train_from_dataset."""
import io
import sys
import textwrap

import pytest

import documents
import paddle
import paddle.fluid as fluid
from paddle import static
from paddle.distributed import InMemoryDataset, QueueDataset, fleet


def files(folder, *contents):
    for i, content in enumerate(contents):
        (folder / f"part-{i}").write_text(content)
    return [str(folder / f"part-{i}") for i in range(len(contents))]


def slots():
    return [static.data("ids", [None, 1], "int64", lod_level=1), static.data("dense", [None, 2], "float32"),
            static.data("label", [None, 1], "int64")]


def made(kind, use_var, names, **options):
    dataset = kind()
    dataset.init(use_var=use_var, **options)
    dataset.set_filelist(names)
    return dataset


TWO_FILES = ("2 7 8 2 0.5 1 1 0\n\n1 9 2 2 3 1 1", "3 1 2 3 2 4 5 1 0\n")


def test_batches_go_over_the_ends_of_files(tmp_path):
    dataset = made(QueueDataset, slots(), files(tmp_path, *TWO_FILES), batch_size=2)
    for _ in range(2):  # every pass reads the files again
        first, second = dataset.feeds()
        assert first["ids"].numpy().tolist() == [[7], [8], [9]] and first["ids"].recursive_sequence_lengths() == [[2, 1]]
        assert first["dense"].tolist() == [[0.5, 1], [2, 3]] and first["label"].tolist() == [[0], [1]]
        assert second["ids"].recursive_sequence_lengths() == [[3]]


def test_training(tmp_path, capfd):
    ids, dense, label = slots()
    table = fluid.layers.embedding(ids, [20, 4], is_sparse=True)
    both = paddle.concat([fluid.layers.sequence_pool(table, "sum"), dense], 1)
    loss = paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(both, 2), label))
    paddle.optimizer.Adam(0.05).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    dataset = made(InMemoryDataset, [ids, dense, label], files(tmp_path, *TWO_FILES), batch_size=3)
    dataset.load_into_memory()
    for _ in range(30):
        dataset.local_shuffle()
        assert exe.train_from_dataset(static.default_main_program(), dataset, fetch_list=[loss], fetch_info=["loss"]) is None
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("batch 0: loss=")]
    losses = [float(line.split("[")[1].rstrip("]")) for line in lines]
    assert len(losses) == 30 and losses[-1] < 0.3 * losses[0]


def test_prints_every_period(tmp_path, capfd):
    x = static.data("x", [None, 1], "int64")
    dataset = made(QueueDataset, [x], files(tmp_path, "".join(f"1 {i}\n" for i in range(5))), batch_size=1)
    static.Executor().infer_from_dataset(static.default_main_program(), dataset, fetch_list=[x], print_period=2)
    assert capfd.readouterr().out == "batch 0: x=[[0]]\nbatch 2: x=[[2]]\nbatch 4: x=[[4]]\n"


def test_one_plan_per_batch_size(tmp_path):
    x = static.data("x", [None, 1], "int64")
    y = paddle.scale(x, 2.0)
    # Seven examples in batches of two: the last batch has one. Both sizes are met with and without printing.
    dataset = made(QueueDataset, [x], files(tmp_path, "".join(f"1 {i}\n" for i in range(7))), batch_size=2)
    exe = static.Executor()
    for _ in range(3):
        exe.train_from_dataset(static.default_main_program(), dataset, fetch_list=[y], print_period=3)
        exe.train_from_dataset(static.default_main_program(), dataset)
    assert exe._exe.plans_made() == 2 and exe._exe.plans() == 2


def test_a_handler_sees_variables_while_it_trains(tmp_path):
    counter = static.create_global_var([1], 0.0, "float32", True, name="counter")
    paddle.increment(counter)
    x = static.data("x", [None, 1], "int64")
    seen = []

    class Handler(fluid.executor.FetchHandler):
        def handler(self, res_dict):
            seen.append(float(res_dict["steps"][0]))

    exe = static.Executor()
    exe.run(static.default_startup_program())
    dataset = made(QueueDataset, [x], files(tmp_path, "1 0\n" * 3))
    exe.train_from_dataset(static.default_main_program(), dataset, fetch_handler=Handler({"steps": counter}, 0))
    assert seen == [1, 2, 3]


def test_the_1_x_way_of_making_one(tmp_path):
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var(slots())
    dataset.set_batch_size(2)
    dataset.set_thread(4)
    dataset.set_pipe_command("head -1")
    dataset.set_filelist(files(tmp_path, *TWO_FILES))
    dataset.preload_into_memory()
    dataset.wait_preload_done()
    assert dataset.get_memory_data_size() == 2 and len(list(dataset.feeds())) == 1
    dataset.release_memory()
    with pytest.raises(paddle.InvalidArgumentError, match="load_into_memory"):
        list(dataset.feeds())
    with pytest.raises(ValueError, match="QueueDataset or InMemoryDataset"):
        fluid.DatasetFactory().create_dataset("FileInstantDataset")


def test_a_generator_is_the_pipe_command(tmp_path):
    (tmp_path / "reader.py").write_text(textwrap.dedent("""
        from paddle.distributed.fleet import MultiSlotDataGenerator

        class Reader(MultiSlotDataGenerator):
            def generate_sample(self, line):
                def samples():
                    words = line.split()
                    yield zip(["ids", "dense", "label"], [[int(w) for w in words[1:]], [0.5, 1.5], [int(words[0])]])
                return samples

        Reader().run_from_stdin()
    """))
    dataset = made(QueueDataset, slots(), files(tmp_path, "1 4 5\n0 6\n"), batch_size=2,
                   pipe_command=f"{sys.executable} {tmp_path}/reader.py")
    feed, = dataset.feeds()
    assert feed["ids"].numpy().ravel().tolist() == [4, 5, 6] and feed["label"].ravel().tolist() == [1, 0]


def test_generators(monkeypatch):
    def printed(kind, samples, batch=None):
        class Reader(kind):
            def generate_sample(self, line):
                return lambda: iter(samples)

            def generate_batch(self, samples):
                return lambda: reversed(samples)
        reader, out = Reader(), io.StringIO()
        if batch:
            reader.set_batch(batch)
        monkeypatch.setattr(sys, "stdout", out)
        reader.run_from_memory()
        monkeypatch.undo()
        return out.getvalue()

    pair = [[("a", [1, 2]), ("b", [0.5])], None, [("a", [3]), ("b", [1.5])]]
    assert printed(fleet.MultiSlotDataGenerator, pair) == "1 3 1 1.5\n2 1 2 1 0.5\n"
    assert printed(fleet.MultiSlotDataGenerator, pair, 1) == "2 1 2 1 0.5\n1 3 1 1.5\n"
    assert printed(fleet.MultiSlotStringDataGenerator, [[("a", ["1", "2"])]]) == "2 1 2\n"
    for samples, words in (([[("a", [])]], "slot 'a' has no values"), ([[("a", ["x"])]], "must be numbers"),
                           ([[("a", [1])], [("b", [1])]], "slots of a sample"), (["abc"], "list of")):
        with pytest.raises(ValueError, match=words):
            printed(fleet.MultiSlotDataGenerator, samples, 1)


def test_errors_name_what_is_wrong(tmp_path):
    use_var = slots()
    with pytest.raises(paddle.FleetXError, match="sample '1 5 3 1 2 3 1 0': slot 'dense': has 3 values, expected 2"):
        list(made(QueueDataset, use_var, files(tmp_path, "1 5 3 1 2 3 1 0\n")).feeds())
    with pytest.raises(paddle.InvalidArgumentError, match="pipe_command 'exit 3' ended with 3 on .*part-0"):
        list(made(QueueDataset, use_var, files(tmp_path, ""), pipe_command="exit 3").feeds())
    with pytest.raises(paddle.InvalidArgumentError, match="nowhere is not there"):
        made(QueueDataset, use_var, [str(tmp_path / "nowhere")])
    with pytest.raises(paddle.InvalidArgumentError, match="set_filelist"):
        list(made(QueueDataset, use_var, []).feeds())
    with pytest.raises(paddle.InvalidArgumentError, match="use_var"):
        list(made(QueueDataset, [], files(tmp_path, "")).feeds())
    dataset = made(QueueDataset, use_var, [], queue_num=4)
    dataset.update_settings(batch_size=7)
    assert dataset.batch_size == 7
    with pytest.raises(TypeError, match="no setting 'batchsize'"):
        dataset.update_settings(batchsize=7)
    with pytest.raises(NotImplementedError, match="parse_ins_id=True: lines hold the slots"):
        dataset.update_settings(parse_ins_id=True)
    with pytest.raises(TypeError, match="needs a dataset"):
        static.Executor().train_from_dataset(static.default_main_program())


def test_workers_shuffle_together(tmp_path):
    (tmp_path / "a.py").write_text(textwrap.dedent("""
        import paddle
        import paddle.distributed.fleet as fleet
        from paddle import static
        paddle.enable_static()
        fleet.init(is_collective=True)
        dataset = paddle.distributed.InMemoryDataset()
        dataset.init(use_var=[static.data("x", [None, 1], "int64")], batch_size=1000)
        with open(f"part-{fleet.worker_index()}", "w") as file:
            file.writelines(f"1 {100 * fleet.worker_index() + i}\\n" for i in range(100))
        dataset.set_filelist([f"part-{fleet.worker_index()}"])
        dataset.load_into_memory()
        dataset.global_shuffle(fleet)
        here = [int(i) for i in next(dataset.feeds())["x"].ravel()]
        both = fleet.util.all_reduce([here.count(i) for i in range(200)])
        print("each once:", set(both) == {1}, "mixed:", 20 < sum(i < 100 for i in here) < 80,
              dataset.get_memory_data_size(fleet), flush=True)
    """))
    result = documents.run("fleetrun --nproc_per_node=2 a.py", tmp_path)
    assert "each once: True mixed: True 200" in result.output, result.output
