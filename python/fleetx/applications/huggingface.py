"""BERT's weights in the files of Hugging Face: model.safetensors and config.json of BertForPreTraining (or BertModel,
which has no heads). Names differ, matrices are transposed, and the two classes of next sentences stand the other way
round."""
import json
import os
from typing import Dict, Iterator, NamedTuple, Tuple

import numpy

from paddle._native import native

FILE, CONFIG = "model.safetensors", "config.json"


class Entry(NamedTuple):
    theirs: str
    transposed: bool = False
    swapped: bool = False  # the two classes of the last dimension
    is_head: bool = False


def _pair(ours, theirs, **options) -> Iterator[Tuple[str, Entry]]:
    """A layer with weights and bias."""
    yield f"{ours}.w_0", Entry(f"{theirs}.weight", **options)
    yield f"{ours}.b_0", Entry(f"{theirs}.bias", swapped=options.get("swapped", False),
                               is_head=options.get("is_head", False))


def table(layers: int) -> Dict[str, Entry]:
    """{our name: theirs}."""
    names = {f"{ours}_embedding.w_0": Entry(f"bert.embeddings.{theirs}_embeddings.weight")
             for ours, theirs in (("word", "word"), ("position", "position"), ("sentence", "token_type"))}
    names.update(_pair("embedding_norm", "bert.embeddings.LayerNorm"))
    for i in range(layers):
        layer = f"bert.encoder.layer.{i}"
        for part in ("query", "key", "value"):
            names.update(_pair(f"encoder_{i}_attention_{part}", f"{layer}.attention.self.{part}", transposed=True))
        names.update(_pair(f"encoder_{i}_attention_output", f"{layer}.attention.output.dense", transposed=True))
        names.update(_pair(f"encoder_{i}_norm_0", f"{layer}.attention.output.LayerNorm"))
        names.update(_pair(f"encoder_{i}_ffn_0", f"{layer}.intermediate.dense", transposed=True))
        names.update(_pair(f"encoder_{i}_ffn_1", f"{layer}.output.dense", transposed=True))
        names.update(_pair(f"encoder_{i}_norm_1", f"{layer}.output.LayerNorm"))
    names.update(_pair("pooler", "bert.pooler.dense", transposed=True))
    names.update(_pair("word_transform", "cls.predictions.transform.dense", transposed=True, is_head=True))
    names.update(_pair("word_transform_norm", "cls.predictions.transform.LayerNorm", is_head=True))
    names["word_output.b_0"] = Entry("cls.predictions.bias", is_head=True)
    names.update(_pair("sentence_output", "cls.seq_relationship", transposed=True, swapped=True, is_head=True))
    return names


def theirs_to_ours(value: numpy.ndarray, entry: Entry) -> numpy.ndarray:
    value = value.T if entry.transposed else value
    # Ours: 1, theirs: 0 where the second sentence follows.
    return numpy.ascontiguousarray(value[..., ::-1] if entry.swapped else value)


def ours_to_theirs(value: numpy.ndarray, entry: Entry) -> numpy.ndarray:
    value = value[..., ::-1] if entry.swapped else value
    return numpy.ascontiguousarray(value.T if entry.transposed else value)


def _aliases(name):
    """What a tensor is called in files of other classes and of old versions."""
    for plain in (name, name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")):
        yield plain
        if plain.startswith("bert."):
            yield plain[len("bert."):]


def read(path, layers: int) -> Tuple[Dict[str, numpy.ndarray], bool]:
    """({our name: value}, are the heads there?) of a file, or of a folder with model.safetensors."""
    path = os.fspath(path)
    file = os.path.join(path, FILE) if os.path.isdir(path) else path
    tensors, _ = native.load_tensors(file)
    found, missing, heads = {}, [], True
    for ours, entry in table(layers).items():
        name = next((alias for alias in _aliases(entry.theirs) if alias in tensors), None)
        if name is not None:
            found[ours] = theirs_to_ours(tensors[name], entry)
        elif entry.is_head and not any(key.startswith("cls.") for key in tensors):
            heads = False
        else:
            missing.append(entry.theirs)
    if missing:
        raise native.InvalidArgumentError(f"{file}: has no '{missing[0]}'" +
                                          (f" and {len(missing) - 1} others" if len(missing) > 1 else "") +
                                          f", which a BERT of {layers} layers needs")
    deeper = f"encoder.layer.{layers}."
    if any(deeper in name for name in tensors):
        raise native.InvalidArgumentError(f"{file}: has more layers than the model's {layers}")
    return found, heads


def write(folder, values: Dict[str, numpy.ndarray], config: dict, layers: int) -> None:
    """model.safetensors and config.json, made whole."""
    folder = os.fspath(folder)
    os.makedirs(folder, exist_ok=True)
    tensors = {entry.theirs: ours_to_theirs(values[ours], entry) for ours, entry in table(layers).items()}
    native.save_tensors(os.path.join(folder, FILE), tensors, {"format": "pt"})
    with open(os.path.join(folder, CONFIG), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


# Of config.json: what changes the network, and has one value here.
_AS_BERT = {"position_embedding_type": "absolute", "layer_norm_eps": 1e-12, "is_decoder": False, "tie_word_embeddings": True}


def read_config(folder) -> dict:
    path = os.path.join(os.fspath(folder), CONFIG)
    with open(path, encoding="utf-8") as file:
        try:
            config = json.load(file)
        except ValueError as e:
            raise native.CorruptFileError(f"{path}: {e}") from e
    wanted = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    missing = [key for key in wanted if not isinstance(config.get(key), int)]
    if missing:
        raise native.CorruptFileError(f"{path}: '{missing[0]}' is missing or no number")
    if config["intermediate_size"] != 4 * config["hidden_size"] or config.get("hidden_act", "gelu") != "gelu":
        raise native.UnsupportedError(f"{path}: intermediate_size must be 4 x hidden_size and hidden_act gelu")
    for key, ours in _AS_BERT.items():
        if config.get(key, ours) != ours:
            raise native.UnsupportedError(f"{path}: {key} is {config[key]!r}; only {ours!r}, as BERT has it")
    return config


def check_config(path, options) -> None:
    """What the shapes of the tensors do not tell, where the file at `path` has a config.json beside it."""
    folder = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
    if not os.path.exists(os.path.join(folder, CONFIG)):
        return
    heads = read_config(folder)["num_attention_heads"]
    if heads != options["heads"]:
        raise native.InvalidArgumentError(f"{os.path.join(os.fspath(folder), CONFIG)}: num_attention_heads is {heads}, but the model has "
                                          f"{options['heads']} heads; make the model with heads={heads}, or by Bert.of_huggingface")
