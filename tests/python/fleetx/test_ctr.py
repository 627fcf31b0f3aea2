import numpy as np
import pytest

import fleetx as X
from paddle._native import native


def line(label=1, numbers=range(13), words=("a",) * 26):
    return "\t".join(map(str, [label, *numbers, *words])) + "\n"


@pytest.fixture(scope="module")
def model():
    return X.applications.MultiSlotCTR(sparse_feature_dim=1001, embedding_size=4, hidden=[8])


def test_the_network(model):
    assert [v.name for v in model.inputs] == ["dense_input", *(f"C{i}" for i in range(1, 27)), "label"]
    assert model.parameter_list()[0] == "SparseFeatFactors" and model.predict.shape[1] == 2


def test_lines_become_batches(model, tmp_path):
    (tmp_path / "part-0").write_text(line(1) + line(0, [""] * 13, ["b"] + ["a"] * 25) + line())
    batches = list(model.load_criteo_from_file(tmp_path, batch_size=2, shuffle=False))
    assert [len(b["label"]) for b in batches] == [2, 1]
    first = batches[0]
    assert first["label"].tolist() == [[1], [0]] and first["dense_input"].shape == (2, 13)
    np.testing.assert_allclose(first["dense_input"][0][:3], [0, 4 / 603, 2 / 100], rtol=1e-6)
    np.testing.assert_allclose(first["dense_input"][1][1], 3 / 603, rtol=1e-6)  # empty: 0, from -3 on
    ids = [first[f"C{i}"][0, 0] for i in range(1, 27)]
    assert all(0 <= i < 1001 for i in ids) and len(set(ids)) > 20  # the same word of two slots is two ids
    assert first["C1"][0, 0] != first["C1"][1, 0] and first["C2"][0, 0] == first["C2"][1, 0]


def test_a_bad_line_is_named(model, tmp_path):
    for text, words in ((line() + "1\t2\n", "part-0:2: .*before field 3 of 40"), (line("x"), "part-0:1: .*'x'")):
        (tmp_path / "part-0").write_text(text)
        with pytest.raises(native.CorruptFileError, match=words):
            list(model.load_criteo_from_file(tmp_path / "part-0"))
    (tmp_path / "part-0").write_text(line() + "1\t2\n" + line())
    feed, = model.load_criteo_from_file(tmp_path / "part-0", on_damaged="skip")
    assert len(feed["label"]) == 2
    with pytest.raises(native.InvalidArgumentError, match="no files of samples"):
        (tmp_path / "empty").mkdir()
        model.load_criteo_from_file(tmp_path / "empty")


def test_passes_are_shuffled(model, tmp_path):
    for i in range(3):
        (tmp_path / f"part-{i}").write_text("".join(line(numbers=[n] + [0] * 12) for n in range(100 * i, 100 * i + 100)))
    seen = lambda loader: [float(x) for feed in loader() for x in feed["dense_input"][:, 0]]  # noqa: E731
    in_order = seen(model.load_criteo_from_file(tmp_path, batch_size=1, shuffle=False))
    loader = model.load_criteo_from_file(tmp_path, batch_size=1)
    first, second = seen(loader), seen(loader)
    assert first != in_order and first != second and sorted(first) == sorted(second) == in_order
    assert seen(model.load_criteo_from_file(tmp_path, batch_size=1)) == first


def test_workers_that_are_more_than_files_share_lines(model, tmp_path, monkeypatch):
    (tmp_path / "part-0").write_text("".join(line(numbers=[n] + [0] * 12) for n in range(0, 200, 20)))
    shares = []
    for rank in range(3):
        monkeypatch.setattr("fleetx._job.worker", lambda: (rank, 3))
        feed, = model.load_criteo_from_file(tmp_path, shuffle=False)
        shares.append(feed["dense_input"][:, 0].astype(int).tolist())
    assert shares == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


def test_multi_slot_lines(model, tmp_path):
    words = " ".join(f"1 {i}" for i in range(26))
    (tmp_path / "part-0").write_text(f"13 {' '.join(map(str, range(13)))} {words} 1 1\n")
    feed, = model.load_multislot_from_file(tmp_path)
    assert feed["dense_input"].tolist() == [list(range(13))] and feed["C26"].tolist() == [[25]]
    assert feed["label"].tolist() == [[1]]
