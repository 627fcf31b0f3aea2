"""A small set of pictures, on disk and on a web server of this machine."""
import contextlib
import hashlib
import http.server
import pathlib
import tarfile
import threading

import pytest

from paddle._native import native

CLASSES = 4


@pytest.fixture(scope="session")
def flowers(tmp_path_factory):
    """Folder with train.txt (61 pictures) and val.txt (10)."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        return pathlib.Path(native.cached_flowers(classes=CLASSES, train=61, val=10, size=64))


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Not a worker of whatever job started the tests; fresh programs and variables for every test."""
    from paddle import static
    for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "FLEETX_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()):
        yield


@contextlib.contextmanager
def serve(folder):
    """Address of a server of this folder's files."""
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def pack(flowers, folder, parts=3):
    """The set as it lies on a server: archives, filelist.txt, meta.txt, lists."""
    folder.mkdir(parents=True)
    pictures = sorted(flowers.glob("*/*.jpg"))
    lines = []
    for part in range(parts):
        path = folder / f"part-{part}.tar"
        with tarfile.open(path, "w") as archive:
            for picture in pictures[part::parts]:
                archive.add(picture, arcname=str(picture.relative_to(flowers)))
        lines.append(f"{path.name} {hashlib.md5(path.read_bytes()).hexdigest()}\n")
    (folder / "filelist.txt").write_text("".join(lines))
    (folder / "meta.txt").write_text("train.txt\nval.txt\n")
    for name in ("train.txt", "val.txt"):
        (folder / name).write_bytes((flowers / name).read_bytes())


@pytest.fixture
def server(flowers, tmp_path):
    """Address of a server with /test/loader/small_imagenet.yaml and what it points to."""
    root = tmp_path / "server"
    pack(flowers, root / "test/loader/set")
    (root / "test/loader/small_imagenet.yaml").write_text("bos_path: set\n")
    with serve(root) as address:
        yield address


@pytest.fixture
def in_hdfs(flowers, hadoop):
    """The yaml of a set in HDFS."""
    pack(flowers, hadoop.cluster / "data/set")
    yaml = hadoop.folder / "set.yaml"
    yaml.write_text(f"hadoop_home: {hadoop.home}\nfs.default.name: hdfs://cluster:9000\nhadoop.job.ugi: me,secret\n"
                    "data_path: /data/set\n")
    return str(yaml)
