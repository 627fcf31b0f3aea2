"""A small network of clicks with the layers of 1.x, and its data as samples: what the scripts beside this one train."""
import glob
import math

import numpy as np
import paddle.fluid as fluid


def net(is_distributed=False):
    dense = fluid.layers.data(name="dense", shape=[4], dtype="float32")
    ids = [fluid.layers.data(name="C%d" % i, shape=[1], lod_level=1, dtype="int64") for i in range(1, 4)]
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")

    def embedded(one):
        rows = fluid.layers.embedding(input=one, is_sparse=True, is_distributed=is_distributed, size=[50, 8],
                                      param_attr=fluid.ParamAttr(name="table", initializer=fluid.initializer.Uniform()))
        return fluid.layers.sequence_pool(input=rows, pool_type="average")

    both = fluid.layers.concat([embedded(i) for i in ids] + [dense], axis=1)
    start = fluid.initializer.Normal(scale=1 / math.sqrt(both.shape[1]))
    hidden = fluid.layers.fc(input=both, size=16, act="relu", param_attr=fluid.ParamAttr(initializer=start))
    predict = fluid.layers.fc(input=hidden, size=2, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))
    auc, _, states = fluid.layers.auc(input=predict, label=label, num_thresholds=2**12, slide_steps=20)
    return [dense, *ids, label], loss, auc, predict, states


def start_anew(states):
    """AUC counts from here on."""
    for state in states:
        tensor = fluid.global_scope().find_var(state.name).get_tensor()
        tensor.set(np.zeros_like(np.array(tensor)), fluid.CPUPlace())


def files():
    return sorted(glob.glob("data/part-*"))


def samples(names):
    def reader():
        for name in names:
            with open(name) as file:
                for line in file:
                    words = line.split()
                    yield np.array(words[1:5], "float32"), [int(words[6])], [int(words[8])], [int(words[10])], [int(words[12])]
    return reader


def infer(folder):
    """The model that was saved, in this process alone."""
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
        feed = {"dense": np.ones((2, 4), "float32")}
        for name in feeds[1:]:
            feed[name] = fluid.create_lod_tensor(np.array([[1], [2]]), [[1, 1]], fluid.CPUPlace())
        out, = exe.run(program, feed=feed, fetch_list=fetches)
    assert np.allclose(out.sum(1), 1) and out.shape == (2, 2)
