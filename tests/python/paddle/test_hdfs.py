"""HDFSClient, with a `hadoop` that serves a folder of the test."""
import time

import pytest

from paddle.distributed.fleet.utils import fs as files
from paddle.distributed.fleet.utils.fs import HDFSClient


@pytest.fixture
def client(hadoop):
    return HDFSClient(str(hadoop.home), hadoop.settings)


def test_folders_and_files(client, hadoop):
    assert client.need_upload_download() is True
    assert not client.is_exist("/a") and client.ls_dir("/a") == ([], []) and client.list_dirs("/a") == []
    client.mkdirs("/a/b/c")
    client.mkdirs("/a/b")
    client.touch("/a/empty")
    client.touch("/a/empty")
    (hadoop.cluster / "a/two words.txt").write_text("one\ntwo\n")
    assert client.ls_dir("/a") == (["b"], ["empty", "two words.txt"]) and client.list_dirs("/a") == ["b"]
    assert client.is_dir("/a/b") and not client.is_file("/a/b") and not client.is_dir("/a/empty")
    assert client.is_file("/a/empty") and not client.is_file("/a/none") and not client.is_dir("/a/none")
    assert client.is_exist("hdfs://cluster:9000/a/empty")
    assert client.cat("/a/two words.txt") == "one\ntwo" and client.cat("/a/b") == client.cat("/none") == ""
    client.delete("/a/b")
    client.delete("/a/empty")
    client.delete("/a/none")
    assert client.ls_dir("/a") == ([], ["two words.txt"])
    with pytest.raises(files.FSFileExistsError, match="/a/two words.txt exists"):
        client.touch("/a/two words.txt", exist_ok=False)


def test_moves(client, hadoop):
    for name in ("a", "b"):
        (hadoop.cluster / name).write_text(name)
    with pytest.raises(files.FSFileNotExistsError, match="/none"):
        client.mv("/none", "/c")
    with pytest.raises(files.FSFileExistsError, match="/b exists; overwrite=True"):
        client.mv("/a", "/b")
    with pytest.raises(files.FSFileExistsError, match="-mv /a /b.*File exists"):
        client.mv("/a", "/b", test_exists=False)
    client.mv("/a", "/b", overwrite=True)
    assert client.cat("/b") == "a" and not client.is_exist("/a")
    client.rename("/b", "/c")
    assert client.ls_dir("/") == ([], ["c"])
    with pytest.raises(files.FSFileNotExistsError, match="-mv /b /c.*No such file") as caught:
        client.rename("/b", "/c")
    assert caught.value.code == 1


def test_up_and_down(client, hadoop, tmp_path):
    here = tmp_path / "my files"
    (here / "deep").mkdir(parents=True)
    (here / "a 100%.txt").write_text("a")
    (here / "deep/b[1].txt").write_text("b")
    client.upload(str(here), "/all")
    assert client.ls_dir("/all") == (["deep"], ["a 100%.txt"])
    client.upload(str(here / "a 100%.txt"), "/one")
    assert client.cat("/one") == "a"
    with pytest.raises(files.FSFileExistsError, match="-put .* /one"):
        client.upload(str(here / "deep/b[1].txt"), "/one")
    client.upload(str(here / "deep/b[1].txt"), "/one", overwrite=True)
    assert client.cat("/one") == "b"
    client.upload(str(here / "deep"), "/all", overwrite=True)
    assert client.ls_dir("/all") == ([], ["b[1].txt"])
    with pytest.raises(files.FSFileNotExistsError, match="no local file or folder .*/none"):
        client.upload(str(here / "none"), "/one")

    back = tmp_path / "back"
    client.download("/all", str(back))
    assert (back / "b[1].txt").read_text() == "b"
    client.download("/one", str(back))
    client.download("/one", str(tmp_path / "two"))
    assert (back / "one").read_text() == (tmp_path / "two").read_text() == "b"
    (back / "own").write_text("stays")
    (back / "one").write_text("old")
    with pytest.raises(files.FSFileExistsError, match="-get /one"):
        client.download("/one", str(back))
    client.download("/one", str(back), overwrite=True)
    client.download("/all", str(back), overwrite=True)
    assert (back / "one").read_text() == "b" and (back / "own").read_text() == "stays"
    with pytest.raises(files.FSFileNotExistsError, match="/none does not exist"):
        client.download("/none", str(back))


def test_a_command_that_fails(client, hadoop):
    hadoop.fail("-mkdir", 1, "mkdir: Permission denied: user=me\n\tat org.apache.Some.java\n")
    with pytest.raises(files.ExecuteError, match="hadoop fs -mkdir -p /a` ended with code 1: mkdir: Perm") as caught:
        client.mkdirs("/a")
    assert caught.value.code == 1 and "Unable to load native" in caught.value.stderr
    assert caught.value.command.endswith("fs -mkdir -p /a") and "secret" not in str(caught.value)
    hadoop.fail("-test", 1, "test: Call From here to cluster:9000 failed")
    for ask in (client.is_exist, client.is_dir, client.is_file, client.ls_dir, client.delete, client.touch):
        with pytest.raises(files.ExecuteError, match="Call From here to cluster:9000 failed"):
            ask("/a")
    hadoop.fail("-test", 1, "test: `/a': No such file or directory")
    assert not client.is_exist("/a")
    hadoop.fail("-test", 134, "Aborted")
    with pytest.raises(files.FSShellCmdAborted, match="code 134"):
        client.is_exist("/a")
    assert len(hadoop.calls("-mkdir")) == 1


def test_a_command_that_hangs(hadoop):
    client = HDFSClient(str(hadoop.home), hadoop.settings, time_out=700)
    hadoop.hang("-touchz")
    begin = time.time()
    with pytest.raises(files.FSTimeOut, match="-touchz /a` has not ended after 0.7 s .time_out.") as caught:
        client.touch("/a")
    assert time.time() - begin < 10 and caught.value.command.endswith("-touchz /a")
    assert not hadoop.still_runs()


def test_what_it_is_made_of(hadoop, tmp_path):
    with pytest.raises(ValueError, match="hadoop_home='.*': there is no program .*/none/bin/hadoop"):
        HDFSClient(str(tmp_path / "none"), {})
    with pytest.raises(ValueError, match="time_out=0"):
        HDFSClient(str(hadoop.home), {}, time_out=0)
    with pytest.raises(files.ExecuteError, match="code 255: test: wrong settings {}"):
        HDFSClient(str(hadoop.home), None).is_exist("/a")
    client = HDFSClient(str(hadoop.home), hadoop.settings)
    with pytest.raises(NotImplementedError, match="HDFSClient.makedirs exists .* nearest: HDFSClient.mkdirs"):
        client.makedirs("/a")
    with pytest.raises(AttributeError, match="HDFSClient has no 'mkdir'"):
        client.mkdir("/a")


def test_where_it_is_called():
    import paddle
    import paddle.fluid.contrib.utils
    import paddle.fluid.incubate.fleet.utils.fs
    import paddle.fluid.incubate.fleet.utils.hdfs
    assert paddle.fluid.contrib.utils.HDFSClient is paddle.fluid.incubate.fleet.utils.hdfs.HDFSClient is HDFSClient
    assert paddle.distributed.fleet.utils.HDFSClient is paddle.fluid.incubate.fleet.utils.fs.HDFSClient is HDFSClient
    assert paddle.fluid.incubate.fleet.utils.hdfs.ExecuteError is files.ExecuteError
