"""Every test begins with empty programs, an empty scope and names that count from 0."""
import pathlib
import shutil

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


class HadoopHere:
    """A Hadoop that is installed in `home`, whose files are those of the folder `cluster` (fake_hadoop.py)."""

    settings = {"fs.default.name": "hdfs://cluster:9000", "hadoop.job.ugi": "me,secret"}

    def __init__(self, folder):
        self.folder, self.home, self.cluster = folder, folder / "installed", folder / "cluster"
        (self.home / "bin").mkdir(parents=True)
        self.cluster.mkdir()
        program = self.home / "bin/hadoop"
        shutil.copy(pathlib.Path(__file__).parent / "fake_hadoop.py", program)
        program.chmod(0o755)

    def calls(self, words=""):
        path = self.folder / "calls"
        return [line for line in path.read_text().splitlines() if words in line] if path.exists() else []

    def fail(self, command, code, errors):
        (self.folder / "fail").write_text(f"{command} {code} {errors}")

    def hang(self, command):
        (self.folder / "hang").write_text(command)

    def still_runs(self):
        """Whether the command that hung is there (and not only not yet reaped)."""
        try:
            return ") Z" not in pathlib.Path("/proc", (self.folder / "pid").read_text(), "stat").read_text()
        except FileNotFoundError:
            return False


@pytest.fixture
def hadoop(tmp_path):
    return HadoopHere(tmp_path / "hadoop")
