"""Saves for which there is no room; a limit of the process stands for the disk."""
import errno
import resource

import pytest

import documents
import paddle.fluid as fluid
from paddle import static


@pytest.fixture
def limited():
    """limited(bytes): files may not be longer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [16, 1 << 20])
def test_an_inference_model_is_whole_or_not_there(tmp_path, limited, room):
    """There is room for nothing, or for the program alone."""
    x = static.data("x", [None, 600], "float32")
    out = static.nn.fc(x, 1000)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    limited(room)
    with pytest.raises(Exception) as told:
        fluid.io.save_inference_model(str(tmp_path / "model"), ["x"], [out], exe)
    assert str(tmp_path / "model" / ("__model__" if room == 16 else "__params__")) in str(told.value), told.value
    assert room != 16 or told.value.errno == errno.EFBIG
    assert not list((tmp_path / "model").iterdir())


TRAIN = '''
import resource
import paddle
from paddle import static
from paddle.distributed import fleet
paddle.enable_static()
fleet.init()
loss = paddle.mean(static.nn.fc(static.data("x", [None, 600], "float32"), 1000))
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
exe = static.Executor(paddle.CPUPlace())
if fleet.is_server():
    if fleet.server_index() == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, -1))
    fleet.init_server()
    fleet.run_server()
else:
    exe.run(static.default_startup_program())
    fleet.init_worker()
    try:
        fleet.save_persistables(exe, "saved")
    except Exception as e:
        print("told", e)
    fleet.stop_worker()
'''


def test_servers_leave_no_parts_of_a_save_that_failed(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    result = documents.run("fleetrun --server_num=2 --worker_num=1 train.py", tmp_path, environment={"OMP_NUM_THREADS": "1"})
    log = (tmp_path / "log" / "workerlog.0").read_text()
    assert result.code == 0, result.output + log
    assert "told" in log and "server 1" in log and str(tmp_path / "saved") in log and "-1-of-2.part" in log, log
    assert not list((tmp_path / "saved").iterdir())
