import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import fleetx as X
from paddle._native import native


def names_of(folder):
    return {line.split()[0] for line in (folder / "train.txt").read_text().splitlines()}


@pytest.mark.parametrize("keyword", ["fs_yaml", "fs_yml"])
def test_download(server, tmp_path, keyword, capsys):
    local = tmp_path / "data"
    downloader = X.utils.Downloader()
    given = {keyword: server + "/test/loader/small_imagenet.yaml"}
    assert downloader.download_from_bos(**given, local_path=str(local)) == str(local)
    assert all((local / name).exists() for name in names_of(local))
    assert "5 files fetched (71 unpacked), 0 were there" in capsys.readouterr().out
    downloader.download_from_bos(**given, local_path=str(local))
    assert "3 were there" in capsys.readouterr().out


def test_imagenet_comes_from_the_mirror(server, tmp_path, monkeypatch):
    monkeypatch.setenv("FLEETX_MIRROR", server)
    local = X.utils.ImageNetDownloader().download_from_bos(local_path=str(tmp_path / "data"))
    assert (tmp_path / "data/train.txt").exists() and local == str(tmp_path / "data")


def test_shards_are_disjoint_and_complete(server, tmp_path):
    seen = []
    for shard in range(2):
        local = tmp_path / f"shard{shard}"
        X.utils.Downloader().download_from_bos(fs_yaml=server + "/test/loader/small_imagenet.yaml",
                                               local_path=str(local), shard_num=2, shard_id=shard)
        seen += [str(p.relative_to(local)) for p in local.glob("*/*.jpg")]
    assert len(seen) == len(set(seen)) == 71


def test_sharded_is_by_machine(server, tmp_path, monkeypatch):
    for name, value in {"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2", "PADDLE_NNODES": "2", "FLEETX_NODE": "1",
                        "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:1,127.0.0.1:2",
                        "PADDLE_CURRENT_ENDPOINT": "127.0.0.1:2"}.items():
        monkeypatch.setenv(name, value)
    X.utils.Downloader().download_from_bos(fs_yaml=server + "/test/loader/small_imagenet.yaml",
                                           local_path=str(tmp_path / "data"), sharded=True)
    assert len(list((tmp_path / "data").glob("*/*.jpg"))) == 24  # of 71 in three archives: the second one


def test_workers_of_a_machine_divide_its_share(server, tmp_path, monkeypatch):
    """Two machines with two workers each, which have 41 and 20 of the pictures: all have the same number of batches."""
    labels, batches = [], set()
    for worker in range(4):
        node, local = divmod(worker, 2)
        for name, value in {"PADDLE_TRAINER_ID": worker, "PADDLE_TRAINERS_NUM": 4, "PADDLE_NNODES": 2,
                            "FLEETX_NODE": node, "PADDLE_RANK_IN_NODE": local, "PADDLE_LOCAL_SIZE": 2,
                            "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:1,127.0.0.1:2,127.0.0.2:1,127.0.0.2:2",
                            "PADDLE_CURRENT_ENDPOINT": f"127.0.0.{node + 1}:{local + 1}"}.items():
            monkeypatch.setenv(name, str(value))
        local_path = X.utils.Downloader().download_from_bos(
            fs_yaml=server + "/test/loader/small_imagenet.yaml", local_path=str(tmp_path / f"node{node}"), sharded=True)
        loader = X.dataset.image_dataset.ImageLoader(
            os.path.join(local_path, "train.txt"), 4, ["image", "label"], [3, 32, 32], train=True, shuffle=True,
            drop_last=False)
        fed = [feed for (feed,) in loader()]
        assert len(fed) == len(loader)
        batches.add(len(fed))
        labels += [int(v) for feed in fed for v in feed["label"]]
    assert batches == {4}  # 61 pictures, 16 for each worker
    assert set(labels) == set(range(4))


def test_errors(server, tmp_path):
    downloader = X.utils.Downloader()
    with pytest.raises(ValueError, match="404"):
        downloader.download_from_bos(fs_yaml=server + "/no.yaml", local_path=str(tmp_path))
    with pytest.raises(ValueError, match="fs_yaml"):
        downloader.download_from_bos(local_path=str(tmp_path))
    with pytest.raises(ValueError, match="differ"):
        downloader.download_from_bos(fs_yaml="a", fs_yml="b")
    with pytest.raises(ValueError, match="shard_id 3 of shard_num 2"):
        downloader.download_from_bos(fs_yaml="a", local_path=str(tmp_path), shard_num=2, shard_id=3)


def test_checksum(server, tmp_path, request):
    root = request.getfixturevalue("tmp_path") / "server/test/loader/set"
    damaged = bytearray((root / "part-1.tar").read_bytes())
    damaged[700] ^= 1
    (root / "part-1.tar").write_bytes(damaged)
    with pytest.raises(native.CorruptFileError, match="part-1.tar.*sum"):
        X.utils.Downloader().download_from_bos(fs_yaml=server + "/test/loader/small_imagenet.yaml",
                                               local_path=str(tmp_path / "data"))
    assert not (tmp_path / "data/train.txt").exists()


def test_ctrl_c_ends_a_download(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as mute:  # takes requests and never answers
        yaml = tmp_path / "set.yaml"
        yaml.write_text(f"bos_path: http://127.0.0.1:{mute.getsockname()[1]}/set\n")
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        begin = time.time()
        with pytest.raises(KeyboardInterrupt):
            X.utils.Downloader().download_from_bos(fs_yaml=str(yaml), local_path=str(tmp_path / "data"))
        assert time.time() - begin < 20
        timer.join()


@pytest.mark.parametrize("keyword", ["fs_yaml", "fs_yml"])
def test_from_hdfs(in_hdfs, hadoop, tmp_path, keyword, capsys):
    local = tmp_path / "my data"
    for fetched in (5, 2):
        assert X.utils.Downloader().download_from_hdfs(**{keyword: in_hdfs}, local_path=str(local)) == str(local)
        assert f"{local}: {fetched} files fetched" in capsys.readouterr().out
    assert all((local / name).exists() for name in names_of(local))
    assert len(hadoop.calls("-get /data/set/part-")) == 3


def test_shards_from_hdfs(in_hdfs, tmp_path, monkeypatch):
    seen = []
    for shard in range(2):
        local = tmp_path / f"shard{shard}"
        X.utils.Downloader().download_from_hdfs(in_hdfs, str(local), 2, shard)
        seen += [str(p.relative_to(local)) for p in local.glob("*/*.jpg")]
    assert len(seen) == len(set(seen)) == 71
    for name, value in {"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2", "PADDLE_NNODES": "2", "FLEETX_NODE": "1",
                        "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:1,127.0.0.1:2",
                        "PADDLE_CURRENT_ENDPOINT": "127.0.0.1:2"}.items():
        monkeypatch.setenv(name, value)
    X.utils.Downloader().download_from_hdfs(in_hdfs, str(tmp_path / "share"), sharded=True)
    assert len(list((tmp_path / "share").glob("*/*.jpg"))) == 24


def test_errors_from_hdfs(in_hdfs, server, hadoop, tmp_path):
    downloader, local = X.utils.Downloader(), str(tmp_path / "data")
    with pytest.raises(ValueError, match="download_from_hdfs: give fs_yaml"):
        downloader.download_from_hdfs()
    with pytest.raises(ValueError, match="set.yaml: its `data_path` .* call download_from_hdfs"):
        downloader.download_from_bos(in_hdfs, local)
    with pytest.raises(ValueError, match="small_imagenet.yaml: its `bos_path` .* call download_from_bos"):
        downloader.download_from_hdfs(server + "/test/loader/small_imagenet.yaml", local)
    with open(hadoop.cluster / "data/set/part-1.tar", "ab") as part:
        part.write(b"more")
    with pytest.raises(native.CorruptFileError, match="hdfs://cluster:9000/data/set/part-1.tar.*sum"):
        downloader.download_from_hdfs(in_hdfs, local)
    hadoop.fail("-get", 1, "get: Permission denied: user=me, access=READ")
    with pytest.raises(native.CommunicationError, match="hadoop fs -get .*part-.*code 1: get: Permission denied: user=me"):
        downloader.download_from_hdfs(in_hdfs, local)
    (hadoop.home / "bin/hadoop").unlink()
    with pytest.raises(ValueError, match="set.yaml: hadoop_home: there is no program .*/installed/bin/hadoop"):
        downloader.download_from_hdfs(in_hdfs, local)


def test_ctrl_c_ends_a_command_of_hadoop(in_hdfs, hadoop, tmp_path):
    hadoop.hang("-cat")
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        X.utils.Downloader().download_from_hdfs(in_hdfs, str(tmp_path / "data"))
    timer.join()
    assert not hadoop.still_runs()


def test_a_command_of_hadoop_ends_with_its_process(in_hdfs, hadoop, tmp_path):
    hadoop.hang("-cat")
    script = f"import fleetx; fleetx.utils.Downloader().download_from_hdfs({in_hdfs!r}, {str(tmp_path / 'data')!r})"
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        wait_until((hadoop.folder / "pid").exists)
        assert hadoop.still_runs()
        process.kill()
    wait_until(lambda: not hadoop.still_runs())


def wait_until(done):
    end = time.time() + 30
    while not done():
        assert time.time() < end
        time.sleep(0.02)
