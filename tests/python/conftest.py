"""Every test begins with empty programs, an empty scope and names that count from 0."""
import numpy
import pytest

import paddle
from paddle import static


@pytest.fixture(autouse=True)
def fresh():
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()), \
            paddle.utils.unique_name.guard():
        yield


@pytest.fixture
def run():
    """Runs the startup program and the main one once; returns what is fetched."""
    def run(feed, fetch):
        exe = static.Executor(paddle.CPUPlace())
        exe.run(static.default_startup_program())
        return exe.run(static.default_main_program(), feed=feed, fetch_list=fetch)
    return run


@pytest.fixture
def rng():
    return numpy.random.RandomState(0)
