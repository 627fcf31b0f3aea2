"""Tables of sparse_embedding in a job without servers."""
import documents


def test_tables_of_one_process(tmp_path):
    """Admission, shrink, inference by a program from before minimize, static.save; and where tables stay parameters."""
    (tmp_path / "train.py").write_text('''
import numpy as np
import paddle
from paddle import static
from paddle._native import native
from paddle.distributed import fleet
paddle.enable_static()


def build(strategy=None, **more):
    paddle.seed(1)
    ids, y = static.data("ids", [None, 1], "int64"), static.data("y", [None, 1], "float32")
    rows = static.nn.sparse_embedding(ids, [10, 2], param_attr=paddle.ParamAttr(
        name="table", initializer=paddle.nn.initializer.Constant(0.5)), **more)
    out = paddle.sum(rows, axis=1)
    loss = paddle.mean(paddle.square(out - paddle.reshape(y, [-1])))
    test = static.default_main_program().clone(for_test=True)
    optimizer = paddle.optimizer.SGD(0.1)
    if strategy is not False:
        optimizer = fleet.distributed_optimizer(optimizer, strategy)
    optimizer.minimize(loss)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    return exe, test, loss, out


def fed(*ids):
    return {"ids": np.array(ids, "int64").reshape(-1, 1), "y": np.zeros((len(ids), 1), "float32")}


BIG = 1 << 60
fleet.init()
with static.program_guard(static.Program(), static.Program()):
    exe, test, loss, out = build(entry=paddle.distributed.CountFilterEntry(2))
    values = [float(exe.run(feed=fed(BIG), fetch_list=[out])[0]) for _ in range(4)]
    print("admitted", [round(v, 4) for v in values])
    infer = fleet.utils.ps_util.DistributedInfer(test).get_dist_infer_program()
    before = exe.run(infer, feed=fed(BIG, 3), fetch_list=[out])[0].tolist()
    static.save(static.default_main_program(), "one/model")
    for _ in range(3):
        exe.run(feed=fed(BIG), fetch_list=[loss])
    changed = exe.run(infer, feed=fed(BIG, 3), fetch_list=[out])[0].tolist()
    static.load(static.default_main_program(), "one/model")
    print("loaded", exe.run(infer, feed=fed(BIG, 3), fetch_list=[out])[0].tolist() == before != changed, before[1])
    print("dropped", fleet.shrink(100.0), fleet.shrink(100.0))
    try:
        exe.run(feed=fed(-1), fetch_list=[loss])
    except native.InvalidArgumentError as e:
        print("negative:", e)
for strategy in (False, fleet.DistributedStrategy()):
    with static.program_guard(static.Program(), static.Program()):
        if strategy:
            strategy.amp = True
        exe, test, loss, out = build(strategy)
        print("in the program", exe.run(test, feed=fed(3), fetch_list=[out])[0].tolist())
        try:
            exe.run(feed=fed(11), fetch_list=[loss])
        except native.InvalidArgumentError as e:
            print("beyond its size:", "11" in str(e))
''')
    result = documents.run("python train.py", tmp_path)
    assert result.code == 0, result.output
    assert "admitted [0.0, 0.0, " in result.output, result.output
    assert "loaded True 0.0" in result.output and "dropped 1 0" in result.output, result.output
    assert "negative: " in result.output and "id -1 is negative" in result.output, result.output
    assert result.output.count("in the program [1.0]") == 2 and result.output.count("beyond its size: True") == 2, result.output
