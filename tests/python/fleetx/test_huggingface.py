"""BERT's weights to and from Hugging Face's files; hidden states are compared where transformers and torch are installed."""
import json
import pathlib
import sys

import numpy
import pytest

import fleetx as X
import paddle
from paddle import static
from paddle._native import native

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "paddle"))
from peers import python_with, run_script  # noqa: E402

# Loads a folder, or makes one of random weights, and computes.
RUN = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy, torch
from transformers import BertConfig, BertForPreTraining
mode, folder, feed_file, out_file = sys.argv[1:]
torch.manual_seed(3)
torch.set_num_threads(1)
if mode == "make":
    net = BertForPreTraining(BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                        intermediate_size=256, max_position_embeddings=512, initializer_range=0.2))
    for p in net.parameters():
        if p.ndim == 1:
            p.data.add_(0.1 * torch.randn(p.shape))
    net.save_pretrained(folder)
else:
    net = BertForPreTraining.from_pretrained(folder)
net.eval()
feed = numpy.load(feed_file)
with torch.no_grad():
    out = net(input_ids=torch.tensor(feed["src_ids"]), token_type_ids=torch.tensor(feed["sent_ids"]),
              attention_mask=torch.tensor(feed["seen"]), output_hidden_states=True)
numpy.savez(out_file, hidden=out.hidden_states[-1].numpy(), words=out.prediction_logits.numpy(),
            follows=out.seq_relationship_logits.numpy())
"""


def tiny(**options):
    model = X.applications.Bert(**{"vocab_size": 100, "hidden": 64, "layers": 2, "heads": 4, "max_seq_len": 12, **options})
    static.Executor(paddle.CPUPlace()).run(model.startup_prog)
    return model


def feeds(rng):
    seen = numpy.ones([3, 12], "int64")
    seen[1, 9:] = 0
    places = numpy.array([1, 14, 30])
    return {"src_ids": rng.randint(0, 100, [3, 12]), "sent_ids": rng.randint(0, 2, [3, 12]), "seen": seen,
            "input_mask": numpy.where(seen == 0, -1e9, 0).astype("float32").reshape(3, 1, 1, 12), "mask_pos": places}


def outputs(model, feed):
    test = model.main_prog.clone(for_test=True)
    outs = [model.hidden_states, model.word_logits, model.sentence_logits]
    names = ("src_ids", "sent_ids", "input_mask", "mask_pos")
    return static.Executor(paddle.CPUPlace()).run(test._prune(outs), feed={n: feed[n] for n in names}, fetch_list=outs)


@pytest.mark.parametrize("mode", ["make", "load"])
def test_hidden_states_are_those_of_transformers(tmp_path, rng, mode):
    python = python_with("transformers", "torch", "numpy")
    feed, folder = feeds(rng), tmp_path / "saved"
    numpy.savez(tmp_path / "feed.npz", **feed)
    model = None
    if mode == "load":
        model = tiny()
        model.save_huggingface(folder)
    run_script(python, RUN, mode, folder, tmp_path / "feed.npz", tmp_path / "out.npz")
    if mode == "make":
        model = X.applications.Bert.of_huggingface(folder, max_seq_len=12)
        static.Executor(paddle.CPUPlace()).run(model.startup_prog)
        model.load_huggingface(folder)
    hidden, words, follows = outputs(model, feed)
    want = numpy.load(tmp_path / "out.npz")
    seen = feed["seen"] == 1
    numpy.testing.assert_allclose(hidden[seen], want["hidden"][seen], atol=1e-4, rtol=1e-4)
    numpy.testing.assert_allclose(words, want["words"].reshape(-1, 100)[feed["mask_pos"]], atol=1e-4, rtol=1e-4)
    numpy.testing.assert_allclose(follows.reshape(3, 2), want["follows"][:, ::-1], atol=1e-4, rtol=1e-4)


def test_there_and_back(tmp_path, rng):
    feed = feeds(rng)
    model = tiny()
    want = outputs(model, feed)
    model.save_huggingface(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["hidden_size"] == 64 and config["num_hidden_layers"] == 2
    tensors, _ = native.load_tensors(str(tmp_path / "model.safetensors"))
    assert tensors["bert.encoder.layer.1.intermediate.dense.weight"].shape == (256, 64)
    with static.scope_guard(static.Scope()):
        paddle.seed(7)
        again = X.applications.Bert.of_huggingface(tmp_path, max_seq_len=12)
        static.Executor(paddle.CPUPlace()).run(again.startup_prog)
        again.load_huggingface(tmp_path / "model.safetensors")
        for a, b in zip(want, outputs(again, feed)):
            numpy.testing.assert_array_equal(a, b)


def test_old_names_and_files_without_heads(tmp_path, rng, capsys):
    feed = feeds(rng)
    model = tiny()
    want = outputs(model, feed)[0]
    model.save_huggingface(tmp_path)
    tensors, _ = native.load_tensors(str(tmp_path / "model.safetensors"))
    old = {name[len("bert."):].replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
           for name, value in tensors.items() if name.startswith("bert.")}
    native.save_tensors(str(tmp_path / "old.safetensors"), old, {})
    again = tiny()
    again.load_huggingface(tmp_path / "old.safetensors")
    assert "has no heads" in capsys.readouterr().out
    numpy.testing.assert_array_equal(want, outputs(again, feed)[0])


def test_what_does_not_fit_is_named(tmp_path):
    model = tiny()
    model.save_huggingface(tmp_path)
    with pytest.raises(native.InvalidArgumentError, match="'word_embedding.w_0' has the shape \\[100, 64\\], the model \\[90, 64\\]"):
        tiny(vocab_size=90).load_huggingface(tmp_path)
    with pytest.raises(native.InvalidArgumentError, match="has more layers than the model's 1"):
        tiny(layers=1).load_huggingface(tmp_path)
    with pytest.raises(native.InvalidArgumentError, match="has no 'bert.encoder.layer.2"):
        tiny(layers=3).load_huggingface(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    for read in (X.applications.Bert.of_huggingface, tiny().load_huggingface):
        with pytest.raises(native.UnsupportedError, match="hidden_act gelu"):
            read(tmp_path)
    for key, value in (("layer_norm_eps", 1e-5), ("is_decoder", True), ("tie_word_embeddings", False),
                       ("position_embedding_type", "relative_key")):
        (tmp_path / "config.json").write_text(json.dumps({**config, key: value}))
        with pytest.raises(native.UnsupportedError, match=f"config.json: {key} is {value!r}; only "):
            X.applications.Bert.of_huggingface(tmp_path)
    # Heads are the one size that no tensor's shape tells.
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_attention_heads": 2 * config["num_attention_heads"]}))
    for path in (tmp_path, tmp_path / "model.safetensors"):
        with pytest.raises(native.InvalidArgumentError, match="num_attention_heads is 8, but the model has 4 heads; .*of_huggingface"):
            tiny().load_huggingface(path)
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": "many"}))
    with pytest.raises(native.CorruptFileError, match="'vocab_size' is missing or no number"):
        X.applications.Bert.of_huggingface(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(native.CorruptFileError, match="config.json"):
        X.applications.Bert.of_huggingface(tmp_path)
