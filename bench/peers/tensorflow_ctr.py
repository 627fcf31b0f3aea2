"""The job of ctr.py by TensorFlow's ParameterServerStrategy: a server, a coordinator, and as many workers as the argument
says. Updates are written by hand, since the optimizers of Keras 3 do not run under this strategy; it knows async only."""
import json
import os
import sys

import ctr


def start(workers):
    ports = iter(ctr.free_ports(workers + 2))
    cluster = {job: ["127.0.0.1:%d" % next(ports) for _ in range(count)]
               for job, count in [("ps", 1), ("worker", workers), ("chief", 1)]}
    tasks = [{"cluster": cluster, "task": {"type": job, "index": i}} for job in cluster for i in range(len(cluster[job]))]
    # Workers do not end by themselves either.
    ctr.launch(["worker" if task["task"]["type"] == "chief" else "server" for task in tasks],
               [{"TF_CONFIG": json.dumps(task), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""} for task in tasks])


def serve(tf, resolver, workers):
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=max(2, workers + 1))
    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                         protocol="grpc", config=config, start=True).join()


class Model:
    def __init__(self, tf):
        self.tf = tf
        tf.random.set_seed(0)
        sizes = [ctr.SLOTS * ctr.DIM + ctr.NUMBERS, *ctr.HIDDEN, 1]
        self.table = tf.Variable(tf.random.uniform([ctr.IDS, ctr.DIM], -0.1, 0.1))
        self.weights = [tf.Variable(tf.random.normal([a, b], stddev=a ** -0.5)) for a, b in zip(sizes, sizes[1:])]
        self.biases = [tf.Variable(tf.zeros([b])) for b in sizes[1:]]
        self.wide = tf.Variable(tf.zeros([ctr.NUMBERS, 1]))

    def loss(self, rows, places, numbers, labels):
        tf = self.tf
        x = tf.concat([tf.reshape(tf.gather(rows, places), [ctr.BATCH, ctr.SLOTS * ctr.DIM]), numbers], 1)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            x = tf.matmul(x, weight) + bias
            if i < len(ctr.HIDDEN):
                x = tf.nn.relu(x)
        score = tf.squeeze(x + tf.matmul(numbers, self.wide), 1)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=score))

    def step(self, batch):
        tf = self.tf
        numbers, ids, labels = batch
        with tf.GradientTape() as tape:
            unique, places = tf.unique(tf.reshape(ids, [-1]))
            rows = tf.gather(self.table, unique)
            tape.watch(rows)
            loss = self.loss(rows, places, numbers, labels)
        variables = [*self.weights, *self.biases, self.wide]
        of_rows, *gradients = tape.gradient(loss, [rows, *variables])
        self.table.scatter_sub(tf.IndexedSlices(ctr.RATE * tf.convert_to_tensor(of_rows), unique))
        for variable, gradient in zip(variables, gradients):
            variable.assign_sub(ctr.RATE * gradient)
        return loss


def batches(tf, files):
    """Of all files, again and again: the coordinator says how many steps there are."""
    first = 1 + ctr.NUMBERS
    columns = [*range(1, first), *range(first + 1, first + 2 * ctr.SLOTS, 2), first + 2 * ctr.SLOTS + 1]
    kinds = [tf.constant([0.0])] * ctr.NUMBERS + [tf.constant([0], tf.int64)] * ctr.SLOTS + [tf.constant([0.0])]

    def parse(lines):
        values = tf.io.decode_csv(lines, kinds, field_delim=" ", select_cols=columns)
        return tf.stack(values[:ctr.NUMBERS], 1), tf.stack(values[ctr.NUMBERS:-1], 1), values[-1]

    lines = tf.data.Dataset.from_tensor_slices(files).repeat().interleave(
        lambda file: tf.data.TextLineDataset(file, buffer_size=1 << 20), cycle_length=1)
    return lines.batch(ctr.BATCH, drop_remainder=True).map(parse).prefetch(2)


def coordinate(tf, resolver):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = Model(tf)
    data = iter(coordinator.create_per_worker_dataset(lambda: batches(tf, ctr.files_of(0, 1))))
    step = tf.function(lambda iterator: model.step(next(iterator)))

    def train(files):
        for _ in range(sum(map(ctr.count_lines, files)) // ctr.BATCH):
            coordinator.schedule(step, args=(data,))
        coordinator.join()

    ctr.measure(0, 1, train, tf.__version__)


def main():
    workers = int(sys.argv[1])
    if "TF_CONFIG" not in os.environ:
        start(workers)
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("ps", "worker"):
        serve(tf, resolver, workers)
    coordinate(tf, resolver)
    sys.stdout.flush()
    os._exit(0)  # without waiting for the others


if __name__ == "__main__":
    main()
