"""model.strategy(): what is chosen, why, and that fit() takes it where nothing is given."""
import pytest

import fleetx as X
import paddle
from fleetx.applications.recommend import choices

GB = 1_000_000_000


def fields(*arguments):
    return [choice.field for choice in choices(*arguments)]


def test_the_table():
    layers = [f"layer_{i}" for i in range(12)]
    assert fields("text", 110_000_000, 768, layers, 1, 16 * GB) == []
    assert fields("text", 110_000_000, 768, layers, 1, 4 * GB) == ["recompute"]
    assert fields("text", 110_000_000, 768, layers, 2, 4 * GB) == ["auto"]
    assert fields("text", 27_400_000_000, 6144, layers * 5, 8, 64 * GB) == ["auto"]
    assert fields("text", 27_400_000_000, 6144, layers * 5, 1, 64 * GB) == ["", "recompute"]
    assert fields("image", 25_000_000, 0, layers, 8, 16 * GB) == []
    assert fields("mlperf", 25_000_000, 0, layers, 8, 16 * GB) == ["lars"]
    assert fields("click", 10_000_000, 0, [], 1, 16 * GB) == []
    assert fields("click", 10_000_000, 0, [], 4, 16 * GB) == ["a_sync"]
    for family in ("text", "mlperf", "click"):
        for choice in choices(family, 340_000_000, 1024, layers * 2, 4, 4 * GB):
            assert len(choice.sentence) > 30


def test_strategies_of_models():
    bert = X.applications.Bert(vocab_size=100, hidden=64, layers=2, heads=4, max_seq_len=16)
    assert not bert.strategy(memory=16 * GB).recompute
    tight = bert.strategy(memory=1_000_000)
    assert tight.recompute and list(tight.recompute_configs["checkpoints"]) == bert.checkpoints
    several = bert.strategy(workers=4, memory=32 << 20)
    assert several.auto and several.auto_configs["memory_limit_MB"] == 32
    assert "src_ids=256,16" in several.auto_configs["shapes"] and "mask_pos=512" in several.auto_configs["shapes"]
    assert X.applications.Resnet50Mlperf(class_dim=4, image_shape=(3, 32, 32), width=8).strategy().lars
    assert X.applications.WideDeep(sparse_feature_dim=100, slot_num=2).strategy(workers=2).a_sync


def test_fit_takes_it_and_says_so(flowers, capsys):
    paddle.seed(1)
    model = X.applications.Resnet50(class_dim=4, image_shape=(3, 32, 32), width=8)
    trainer = X.MultiGPUTrainer()
    trainer.fit(model, model.get_train_dataloader(str(flowers), batch_size=16), epoch=4)
    out = capsys.readouterr().out
    assert "no optimizer was given: Momentum, rate 0.01, with the strategy that suits Resnet50" in out
    assert "data parallel alone" in out
    losses = [loss for _, loss in trainer.history["train loss"]]
    assert len(losses) == 12 and min(losses[-3:]) != pytest.approx(losses[0])
    assert out.count("no optimizer was given") == 1  # the second pass has one
