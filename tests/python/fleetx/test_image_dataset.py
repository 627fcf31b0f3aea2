import collections

import numpy as np
import pytest

from fleetx.dataset import ImageLoader
from paddle._native import native

SIZE = 32


def loader(path, train=True, batch=4, **options):
    options = {"shuffle": train, "drop_last": False, **options}
    return ImageLoader(path, batch, ["image", "label"], [3, SIZE, SIZE], train, **options)


@pytest.fixture
def unique(flowers):
    """A list in which every picture has a label of its own."""
    lines = (flowers / "train.txt").read_text().splitlines()
    path = flowers / "unique.txt"
    path.write_text("".join(f"{line.split()[0]} {i}\n" for i, line in enumerate(lines)))
    yield path
    path.unlink()


def labels(loader):
    return [int(x) for batch in loader for x in batch[0]["label"]]


def test_batches(flowers):
    batches = list(loader(flowers / "val.txt", train=False))
    assert [len(b[0]["label"]) for b in batches] == [4, 4, 2]
    image = batches[0][0]["image"]
    assert image.dtype == np.float32 and image.shape == (4, 3, SIZE, SIZE)
    assert batches[0][0]["label"].dtype == np.int64 and batches[0][0]["label"].shape == (4, 1)
    assert -2.2 < image.min() < image.max() < 2.7  # (x - mean) / deviation of values in [0, 1]


@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_every_picture_goes_to_exactly_one_worker(unique, world):
    shares = [labels(loader(unique, rank=rank, world=world)) for rank in range(world)]
    assert len({len(share) for share in shares}) == 1, "all workers have the same number of steps"
    count = collections.Counter(sum(shares, []))
    assert set(count) == set(range(61))
    # Only what fills the last round up comes twice.
    assert sorted(count.values()) == [1] * (61 - -61 % world) + [2] * (-61 % world)


def test_passes_are_shuffled_alike_on_all_workers(unique):
    one = loader(unique)
    first, second = labels(one), labels(one)
    assert first != second and sorted(first) == sorted(second)
    two = [loader(unique, rank=rank, world=2) for rank in range(2)]
    for whole in (first, second):
        # Each batch of both together is one of the whole pass, cut in two; the last one is filled up.
        mine, other = labels(two[0]), labels(two[1])
        padded, halves = whole + whole[:1], ([], [])
        for start in range(0, len(padded), 2 * 4):
            part = padded[start:start + 2 * 4]
            halves[0].extend(part[:len(part) // 2])
            halves[1].extend(part[len(part) // 2:])
        assert mine == halves[0] and other == halves[1]


def test_a_pass_that_is_left_early_does_not_shift_the_next(unique):
    whole, left = loader(unique), loader(unique)
    labels(whole)
    next(iter(left))
    assert labels(left) == labels(whole)


def test_output_lines(unique, capsys):
    labels(loader(unique))
    assert capsys.readouterr().out.splitlines() == [
        "('reader shuffle seed', 0)", "('trainerid, trainer_count', 0, 1)",
        "read images from 0, length: 61, lines length: 61, total: 61"]
    second = loader(unique, rank=1, world=4)
    labels(second)
    labels(second)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["('reader shuffle seed', 0)", "('trainerid, trainer_count', 1, 4)",
                         "read images from 16, length: 16, lines length: 16, total: 64"]
    assert lines[3] == "('reader shuffle seed', 1)"


def test_rank_comes_from_the_job(unique, monkeypatch):
    for name, value in {"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2",
                        "PADDLE_TRAINER_ENDPOINTS": "127.0.0.1:1,127.0.0.1:2",
                        "PADDLE_CURRENT_ENDPOINT": "127.0.0.1:2"}.items():
        monkeypatch.setenv(name, value)
    assert labels(loader(unique)) == labels(loader(unique, rank=1, world=2))
    assert len(labels(loader(unique, train=False))) == 61, "everybody validates with everything"


def test_damaged_pictures(flowers, tmp_path):
    picture = (flowers / (flowers / "val.txt").read_text().split()[0]).read_bytes()
    (tmp_path / "good.jpg").write_bytes(picture)
    (tmp_path / "cut.jpg").write_bytes(picture[:len(picture) // 2])
    (tmp_path / "val.txt").write_text("cut.jpg 1\ngood.jpg 2\n")
    with pytest.raises(native.CorruptFileError, match="val.txt:1: .*cut.jpg: damaged"):
        labels(loader(tmp_path / "val.txt", train=False))
    lenient = loader(tmp_path / "val.txt", train=False, on_damaged="replace")
    assert labels(lenient) == [2, 2]
    assert lenient.damaged == 1
    with pytest.raises(ValueError, match="on_damaged"):
        loader(tmp_path / "val.txt", on_damaged="skip")
    with pytest.raises(ValueError, match="no.txt"):
        loader(tmp_path / "no.txt")


def test_arrays_outlive_the_loader(unique):
    passing = loader(unique)
    image = next(iter(passing))[0]["image"]
    copy = image.copy()
    labels(passing)
    del passing
    assert (image == copy).all()
