"""Well-known data sets: from small files of the real forms, and made up where there are none."""
import gzip
import io
import itertools
import pickle
import tarfile
import zipfile

import numpy as np
import pytest

import paddle
from paddle.dataset import cifar, common, conll05, imikolov, movielens, wmt14, wmt16


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEETX_DATA", str(tmp_path))
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    caches = (movielens._all, movielens.get_movie_title_dict, movielens.movie_categories, wmt16._words)
    for cache in caches:
        cache.cache_clear()
    yield tmp_path
    for cache in caches:
        cache.cache_clear()


def archive(path, files):
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as out:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))


def first(reader, n=3):
    return list(itertools.islice(reader(), n))


# ---- made up ----
def test_made_up_sets_have_the_form_of_the_real_ones(capfd):
    for reader, kinds in ((cifar.train10(), 10), (cifar.test100(), 100)):
        pixels, label = first(reader)[0]
        assert pixels.shape == (3072,) and pixels.dtype == np.float32 and 0 <= pixels.min() and pixels.max() <= 1
        assert 0 <= label < kinds
    assert sum(1 for _ in itertools.islice(cifar.train10(cycle=True)(), 2500)) == 2500 > sum(1 for _ in cifar.train10()())
    ids = imikolov.build_dict(5)
    assert all(len(gram) == 5 and max(gram) < len(ids) for gram in first(imikolov.train(ids, 5)))
    source, target = first(imikolov.test(ids, 0, imikolov.DataType.SEQ))[0]
    assert source[1:] == target[:-1] and source[0] == ids["<s>"] and target[-1] == ids["<e>"]
    # Scripts of the field infer with single words and films of the real sets.
    assert len(imikolov.build_dict()) > 211 and movielens.max_movie_id() == 3952 and movielens.max_user_id() == 6040
    assert len(movielens.get_movie_title_dict()) == 5174 and len(movielens.movie_categories()) == 18
    sample = first(movielens.train())[0]
    assert len(sample) == 8 and sample[0] <= movielens.max_user_id() and sample[4] <= movielens.max_movie_id()
    assert all(c < len(movielens.movie_categories()) for c in sample[5])
    assert all(w < len(movielens.get_movie_title_dict()) for w in sample[6]) and sample[3] <= movielens.max_job_id()
    for reader in (wmt14.train(50), wmt16.train(50, 40), wmt16.validation(50, 40, "de")):
        source, target, following = first(reader)[0]
        assert source[0] == 0 and source[-1] == 1 and target[0] == 0 and following[-1] == 1 and target[1:] == following[:-1]
    words, verbs, labels = conll05.get_dict()
    slots = first(conll05.test())[0]
    assert len(slots) == 9 and len({len(s) for s in slots}) == 1 and max(slots[8]) < len(labels) and max(slots[0]) < len(words)
    said = capfd.readouterr().err
    assert all(f"paddle.dataset.{name}" in said or name in common._announced
               for name in ("cifar", "imikolov", "movielens", "wmt14", "wmt16", "conll05"))


def test_parts_differ_and_repeat():
    ids = imikolov.build_dict(5)
    assert first(imikolov.train(ids, 4), 50) == first(imikolov.train(ids, 4), 50) != first(imikolov.test(ids, 4), 50)
    count = [sum(1 for _ in reader()) for reader in (movielens.train(), movielens.test())]
    assert sum(count) == 6000 and 400 < count[1] < 800


# ---- from files ----
def test_cifar(home):
    data = np.arange(2 * 3072, dtype="uint8").reshape(2, 3072)
    files = {f"cifar-10-batches-py/{name}": pickle.dumps({b"data": data, b"labels": [3, 7]}) for name in ("data_batch_1", "test_batch")}
    archive(home / "cifar" / "cifar-10-python.tar.gz", {**files, "cifar-10-batches-py/readme.html": b"x"})
    samples = list(cifar.train10()())
    assert [label for _, label in samples] == [3, 7]
    np.testing.assert_allclose(samples[0][0], data[0] / 255.0, rtol=1e-6)
    archive(home / "cifar" / "cifar-100-python.tar.gz",
            {"cifar-100-python/train": pickle.dumps({b"data": data, b"fine_labels": [99, 1]})})
    assert [label for _, label in cifar.train100()()] == [99, 1]


@pytest.mark.parametrize("content, words", [
    (pickle.dumps(print), "only arrays"), (b"nothing", "no batch"), (pickle.dumps({b"data": [1]}), "no batch"),
    (pickle.dumps({b"data": np.zeros((2, 3072), "uint8"), b"labels": [1]}), "no batch")])
def test_a_damaged_cifar(home, content, words):
    archive(home / "cifar" / "cifar-10-python.tar.gz", {"cifar-10-batches-py/data_batch_1": content})
    with pytest.raises(paddle.FleetXError, match=words):
        list(cifar.train10()())


def test_imikolov(home):
    archive(home / "imikolov" / "simple-examples.tgz", {"./simple-examples/data/ptb.train.txt": b" a b a\n c\n",
                                                        "./simple-examples/data/ptb.valid.txt": b" b b\n"})
    ids = imikolov.build_dict(1)
    assert ids == {"<e>": 0, "<s>": 1, "b": 2, "a": 3, "<unk>": 4}
    assert list(imikolov.train(ids, 2)()) == [(1, 3), (3, 2), (2, 3), (3, 0), (1, 4), (4, 0)]
    assert list(imikolov.train(ids, 3, imikolov.DataType.SEQ)()) == [([1, 4], [4, 0])]
    with pytest.raises(ValueError, match="n-grams"):
        imikolov.train(ids, 0)


def test_movielens(home):
    (home / "movielens").mkdir()
    with zipfile.ZipFile(home / "movielens" / "ml-1m.zip", "w") as out:
        out.writestr("ml-1m/movies.dat", "1::Toy Story (1995)::Animation|Comedy\n3::Heat (1995)::Action\n".encode("latin"))
        out.writestr("ml-1m/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n")
        out.writestr("ml-1m/ratings.dat", "1::3::5::978300760\n2::1::3::978302109\n")
    samples = sorted([*movielens.train()(), *movielens.test()()])
    assert samples == [[1, 1, 0, 10, 3, [0], [0], [5.0]], [2, 0, 6, 16, 1, [1, 2], [2, 1], [1.0]]]
    assert movielens.movie_info()[1].title == "Toy Story" and "age(56)" in repr(movielens.user_info()[2])


def test_damaged_movielens(home):
    (home / "movielens").mkdir()
    with zipfile.ZipFile(home / "movielens" / "ml-1m.zip", "w") as out:
        out.writestr("ml-1m/movies.dat", "1,Toy Story\n")
    with pytest.raises(paddle.FleetXError, match="movies.dat:1: expected fields"):
        movielens.max_user_id()


def test_translations(home):
    archive(home / "wmt14" / "wmt14.tgz", {
        "wmt14/src.dict": b"<s>\n<e>\n<unk>\nhe\nran\n", "wmt14/trg.dict": b"<s>\n<e>\n<unk>\nil\n",
        "wmt14/train/train": b"he ran\til courait\nno translation\n", "wmt14/test/test": b"he\til\n"})
    assert list(wmt14.train(5)()) == [([0, 3, 4, 1], [0, 3, 2], [3, 2, 1])]
    assert list(wmt14.test(4)()) == [([0, 3, 1], [0, 3], [3, 1])]
    assert wmt14.get_dict(4)[0][3] == "he" and wmt14.get_dict(4, reverse=False)[1]["il"] == 3
    archive(home / "wmt16" / "wmt16.tar.gz", {f"wmt16/{part}": b"a dog\tein Hund\na cat\teine Katze\n" for part in ("train", "val", "test")})
    assert wmt16.get_dict("en", 10) == {"<s>": 0, "<e>": 1, "<unk>": 2, "a": 3, "cat": 4, "dog": 5}
    assert list(wmt16.test(5, 10)())[0][0] == [0, 3, 2, 1]
    assert wmt16.get_dict("de", 4, reverse=True)[3] == "Hund"
    with pytest.raises(ValueError, match="'fr'"):
        wmt16.train(5, 5, "fr")


def test_conll05(home):
    words = b"The\ncat\nsat\n.\n\n"
    properties = b"-   (A0*\n-   *)\nsit   (V*)\n-   *\n\n"
    archive(home / "conll05st" / "conll05st-tests.tar.gz", {
        "conll05st-release/test.wsj/words/test.wsj.words.gz": gzip.compress(words),
        "conll05st-release/test.wsj/props/test.wsj.props.gz": gzip.compress(properties)})
    (home / "conll05st" / "wordDict.txt").write_text("<unk>\nThe\ncat\nsat\nbos\neos\n")
    (home / "conll05st" / "verbDict.txt").write_text("sit\n")
    (home / "conll05st" / "targetDict.txt").write_text("B-A0\nI-A0\nB-V\nO\n")
    sample, = conll05.test()()
    assert sample[0] == [1, 2, 3, 0] and [s[0] for s in sample[1:6]] == [1, 2, 3, 0, 5]
    assert sample[6] == [0] * 4 and sample[7] == [1, 1, 1, 1]
    assert conll05.get_dict()[2] == {"B-A0": 0, "I-A0": 1, "B-V": 2, "I-V": 3, "O": 4} and sample[8] == [0, 1, 2, 4]
    with open(conll05.get_embedding(), "rb") as file:
        assert np.frombuffer(file.read()[16:], "float32").shape == (6 * 32,)


def test_fetching_downloads_nothing():
    from paddle import dataset
    for name in "cifar conll05 flowers imdb imikolov mnist movielens uci_housing wmt14 wmt16".split():
        assert getattr(dataset, name).fetch() is None
