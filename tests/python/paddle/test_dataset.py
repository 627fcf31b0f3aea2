"""Data sets of text files, data generators, train_from_dataset."""
import gzip
import io
import signal
import subprocess
import sys
import textwrap
import time
import zlib

import numpy as np
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

    class OfAList(fluid.executor.FetchHandler):
        def handler(self, fetch_target_vars):
            seen.append([None if v is None else float(v[0]) for v in fetch_target_vars])

    exe.train_from_dataset(static.default_main_program(), dataset, fetch_handler=OfAList(["counter", "nothing"], 0, True))
    assert seen[3:] == [[4, None], [5, None], [6, None]]


def test_the_1_x_way_of_making_one(tmp_path):
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    dataset.set_use_var(slots())
    dataset.set_batch_size(2)
    dataset.set_thread(4)
    dataset.set_pipe_command("head -1")
    dataset.set_filelist(files(tmp_path, *TWO_FILES))
    assert "batch_size: 2\n" in dataset.desc() and "pipe_command: head -1\n" in dataset.desc()
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


def read(dataset, name="x"):
    return [int(i) for feed in dataset.feeds() for i in feed[name].ravel()]


def test_damaged_lines_can_be_left_out(tmp_path, capfd):
    x = static.data("x", [None, 1], "int64")
    names = files(tmp_path, "1 0\n1 x\n1 1\n", "2 3 4\n1 99999999999999999999\n1 2")
    dataset = made(QueueDataset, [x], names, batch_size=2)
    with pytest.raises(paddle.FleetXError, match="part-0:2: sample '1 x': slot 'x': 'x' is not a whole number"):
        list(dataset.feeds())
    with pytest.raises(ValueError, match="'raise', 'skip'"):
        dataset.set_bad_line_policy("ignore")
    dataset.update_settings(bad_line_policy="skip")
    assert read(dataset) == [0, 1, 2] and dataset.skipped_lines == 3
    assert "3 damaged lines were left out; the first: " in capfd.readouterr().err
    static.Executor().train_from_dataset(static.default_main_program(), dataset)
    assert capfd.readouterr().err.count("3 damaged lines were left out") == 1
    loaded = made(InMemoryDataset, [x], names, bad_line_policy="skip")
    loaded.load_into_memory()
    assert read(loaded) == [0, 1, 2] and loaded.skipped_lines == 3


def test_packed_and_binary_files(tmp_path):
    use_var = slots()
    names = files(tmp_path, *TWO_FILES)
    packed = [name + ".gz" for name in names]
    for name in names:
        with open(name, "rb") as file, gzip.open(name + ".gz", "wb") as out:
            out.write(file.read())
    subprocess.run(["fleetx", "convert", *packed, "--slots", "ids:int64,dense:float32:2,label:int64:1", "-o",
                    str(tmp_path / "all.bin")], check=True)

    def content(files):
        feeds = list(made(QueueDataset, use_var, files, batch_size=2).feeds())
        return [(f["ids"].numpy().tolist(), f["ids"].lod(), f["dense"].tolist(), f["label"].tolist()) for f in feeds]

    assert content(names) == content(packed) == content([str(tmp_path / "all.bin")])
    with pytest.raises(paddle.InvalidArgumentError, match="has no slot 'other'; it has ids, dense, label"):
        list(made(QueueDataset, [static.data("other", [None, 1], "int64")], [str(tmp_path / "all.bin")]).feeds())


def test_threads_read_files_in_turn(tmp_path):
    x = static.data("x", [None, 1], "int64")
    names = files(tmp_path, *("".join(f"1 {10 * part + i}\n" for i in range(4)) for part in range(3)))
    assert read(made(QueueDataset, [x], names, batch_size=2)) == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    assert read(made(QueueDataset, [x], names, batch_size=2, thread_num=2)) == \
        [0, 1, 10, 11, 2, 3, 12, 13, 20, 21, 22, 23]


def test_the_same_seed_gives_the_same_orders(tmp_path):
    x = static.data("x", [None, 1], "int64")
    names = files(tmp_path, "".join(f"1 {i}\n" for i in range(100)))

    def orders(seed):
        dataset = made(InMemoryDataset, [x], names, batch_size=16)
        dataset.set_shuffle_seed(seed)
        dataset.load_into_memory(is_shuffle=True)
        first = read(dataset)
        dataset.local_shuffle()
        return first, read(dataset)

    first, second = orders(1)
    assert sorted(first) == sorted(second) == list(range(100)) and first != second
    assert orders(1) == (first, second) and orders(2)[0] != first


def test_criteo_lines_are_hashed(tmp_path):
    lines = ["1\t" + "\t".join(["", "5", "-1"] + [str(i) for i in range(10)]) + "\t" +
             "\t".join(["68fd1e64", ""] * 13), "0" + "\t7" * 13 + "\tabc" * 26]
    name, = files(tmp_path, "\n".join(lines) + "\n")
    use_var = [static.data("dense", [None, 13], "float32"), *(static.data(f"C{i}", [None, 1], "int64") for i in range(26)),
               static.data("label", [None, 1], "int64")]
    dataset = made(QueueDataset, use_var, [name], batch_size=2)
    dataset.set_data_format("criteo", ids=1000)
    feed, = dataset.feeds()
    for i in range(26):  # the place is part of the word
        assert feed[f"C{i}"].ravel().tolist() == [zlib.crc32(f"{i + 1}{word}".encode()) % 1000
                                                  for word in (["68fd1e64", ""][i % 2], "abc")]
    least = np.array([0, -3] + [0] * 11)
    span = np.array([20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50])
    numbers = np.array([[0, 5, -1, *range(10)], [7] * 13])
    np.testing.assert_allclose(feed["dense"], (numbers - least) / span, rtol=1e-6)
    assert feed["label"].tolist() == [[1], [0]]


def test_a_pool_of_samples_is_shuffled(tmp_path):
    x = static.data("x", [None, 1], "int64", lod_level=1)
    name, = files(tmp_path, "".join(f"2 {i} {i}\n" for i in range(50)))
    dataset = made(QueueDataset, [x], [name], batch_size=5)

    def read(pool, seed):
        return [int(i) for feed in dataset.shuffled_feeds(pool, seed) for i in np.asarray(feed["x"]).ravel()[::2]]
    order = read(20, 1)
    assert order == read(20, 1) != read(20, 2)
    for begin in (0, 20, 40):  # nothing leaves its pool
        assert sorted(order[begin:begin + 20]) == list(range(begin, min(begin + 20, 50)))


def test_files_are_shared_line_by_line(tmp_path):
    x = static.data("x", [None, 1], "int64")
    names = files(tmp_path, "1 0\n1 1\n1 2\n", "1 3\n1 4\n")
    dataset = made(QueueDataset, [x], names)
    dataset.set_line_share(1, 2)
    assert read(dataset) == [1, 4]
    with pytest.raises(ValueError, match="from 0 to count - 1, got 2 of 2"):
        dataset.set_line_share(2, 2)


def test_slots_that_a_program_does_not_have_are_not_fed(tmp_path, capfd):
    with static.program_guard(static.Program()):
        other = static.data("unknown_slot", [None, 1], "int64")
    x = static.data("x", [None, 1], "int64")
    dataset = made(QueueDataset, [other, x], files(tmp_path, "1 7 1 8\n"))
    with pytest.warns(UserWarning, match="feed 'unknown_slot' is not used"):
        static.Executor().train_from_dataset(static.default_main_program(), dataset, fetch_list=[x])
    assert capfd.readouterr().out == "batch 0: x=[[8]]\n"


def test_an_empty_list_of_files_says_what_to_do_instead():
    dataset = QueueDataset()
    dataset.init(use_var=slots())
    with pytest.raises(ValueError, match="call set_filelist"):
        next(iter(dataset.feeds()))
    dataset.set_filelist([])  # as get_file_shard has it for some
    with pytest.raises(ValueError, match="empty list.*set_line_share"):
        next(iter(dataset.feeds()))


def test_a_handler_changes_the_learning_rate(tmp_path):
    x = static.data("x", [None, 1], "float32")
    w = static.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    rate = paddle.optimizer.lr.StepDecay(1.0, step_size=1, gamma=0.5)
    paddle.optimizer.SGD(rate).minimize(paddle.mean(x * w))

    class Handler(fluid.executor.FetchHandler):
        def handler(self, res_dict):
            rate.step()

    exe = static.Executor()
    exe.run(static.default_startup_program())
    dataset = made(QueueDataset, [x], files(tmp_path, "1 1\n" * 3))
    exe.train_from_dataset(static.default_main_program(), dataset, fetch_handler=Handler({"w": w}, 0))
    assert static.global_scope().find_var(w.name).get_tensor().numpy().tolist() == [-1.75]


def test_ctrl_c_ends_the_loop(tmp_path):
    (tmp_path / "data").write_text("")
    (tmp_path / "a.py").write_text(textwrap.dedent("""
        import paddle
        from paddle import static
        paddle.enable_static()
        x = static.data("x", [None, 1], "int64")
        dataset = paddle.distributed.QueueDataset()
        dataset.init(use_var=[x], pipe_command="echo 1 5; sleep 100")
        dataset.set_filelist(["data"])
        static.Executor().train_from_dataset(static.default_main_program(), dataset, fetch_list=[x])
    """))
    script = subprocess.Popen([sys.executable, "a.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert script.stdout.readline() == "batch 0: x=[[5]]\n"
    begin = time.monotonic()
    script.send_signal(signal.SIGINT)
    _, errors = script.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors and time.monotonic() - begin < 5


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


def test_settings_of_1_x_by_methods():
    dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    for name, value in (("queue_num", 4), ("fleet_send_batch_size", 1024), ("download_cmd", "cat"), ("parse_ins_id", False)):
        getattr(dataset, f"set_{name}")(value)
    dataset.set_fea_eval(1000)
    dataset.set_hdfs_config("", "")
    for call, words in ((lambda: dataset.set_hdfs_config("hdfs://here", "user,word"), "HDFS"),
                        (lambda: dataset.set_parse_ins_id(True), "slots of use_var"),
                        (lambda: dataset.set_merge_by_lineid(2), "slots of use_var"),
                        (lambda: dataset.slots_shuffle(["a"]), "local_shuffle")):
        with pytest.raises(NotImplementedError, match=words):
            call()
