"""What is measured: one Case per figure of ours, with what is asked of it."""
from dataclasses import dataclass, field

MB = 1 << 20
ONE_WORKER = "one worker x 2"
TWO_COPIES = "two copies side by side"
OWN_TEXT = "own text reader"
PADDLE_READER = "paddle 2.6 InMemoryDataset"
LEVELS = ["sse", "avx2", "avx512", "avx512_bf16", "amx"]  # instruction sets, each with those before it


@dataclass(frozen=True)
class Case:
    bench: str
    unit: str
    asked: dict  # peer -> bound on ours / peer: a ratio, or one per instruction set; None: nothing is asked
    model: str = ""
    batch: int = None
    workers: int = 1
    threads: int = None  # of each worker
    warmup: int = 1
    steps: int = 3
    test: bool = False
    field: str = "items_per_s"  # of the lines that ours and the peers print
    lower_is_better: bool = False
    limit: float = None  # ours has to stay below it, or to reach it where more is better, whatever the peers do

    def __str__(self):
        name = self.bench if self.model in self.bench else f"{self.bench} {self.model}"
        size = f" batch {self.batch}" if self.batch else ""
        counts = [(self.workers, "worker")] * (self.workers > 1) + [(self.threads, "thread")] * bool(self.threads)
        return f"{name}{size}, " + " x ".join(f"{n} {what}{'s' * (n > 1)}" for n, what in counts)

    @property
    def cores(self):
        """How many it is measured on; None: all."""
        return self.threads and self.workers * self.threads

    def better(self, a, b):
        return a < b if self.lower_is_better else a > b

    def ratio_asked(self, peer, isa):
        """The bound on ours / peer, or None."""
        asked = self.asked.get(peer)
        if isinstance(asked, dict):  # that of the highest level that isa has, or the lowest of all
            levels = sorted(asked, key=LEVELS.index)
            has = [level for level in levels if isa in LEVELS[LEVELS.index(level):]]
            return asked[has[-1] if has else levels[0]]
        return asked

    def holds(self, ratio, bound):
        return ratio <= bound if self.lower_is_better else ratio >= bound


@dataclass(frozen=True)
class Bench:
    """Networks that are trained, or answer."""
    name: str
    description: str
    unit: object  # or one per model
    asked: dict  # peer -> bound, see Case
    sizes: tuple  # (model, batch) pairs
    threads: tuple = (1,)
    warmup: int = 1
    steps: int = 3
    rounds: int = 3
    options: tuple = ()  # further fields of Case

    def asks(self):
        sign = "<=" if dict(self.options).get("lower_is_better") else ">="
        texts = [f"of {peer}: {bounds(asked, sign)}" for peer, asked in self.asked.items() if asked]
        return "asked " + "; ".join(texts) if texts else "nothing is asked"

    def cases(self, batch, threads, quick):
        sizes = dict.fromkeys((model, batch or size) for model, size in self.sizes)
        steps = max(2, self.steps // 4) if quick else self.steps
        units = self.unit if isinstance(self.unit, dict) else {model: self.unit for model, _ in sizes}
        return [Case(self.name, units[model], {} if model == "copy" else self.asked, model, size, threads=count,
                     warmup=self.warmup, steps=steps, **dict(self.options))
                for model, size in sizes for count in ((threads,) if threads else self.threads)]


def bounds(asked, sign):
    if isinstance(asked, dict):
        return ", ".join(f"{sign} {ratio:g} ({isa})" for isa, ratio in asked.items())
    return f"{sign} {asked:g}"


@dataclass(frozen=True)
class Launch:
    """Jobs that start, meet, all-reduce one number and end."""
    name: str
    description: str
    limits: dict  # workers -> seconds
    most_for_peer: int  # torchrun takes minutes beyond
    rounds: int = 3

    def asks(self):
        return "asked: " + ", ".join(f"< {limit:g} s ({workers} workers)" for workers, limit in self.limits.items())

    def cases(self, _batch, _threads, _quick):
        return [Case(self.name, "s", {"torchrun": None} if workers <= self.most_for_peer else {}, workers=workers,
                     field="seconds", lower_is_better=True, limit=limit) for workers, limit in self.limits.items()]


@dataclass(frozen=True)
class Reader:
    """Samples of a recommender, read by one core."""
    name: str
    description: str
    of_paddle: float  # text
    of_text: float  # binary files, relative to text
    rounds: int = 3

    def asks(self):
        return f"asked of {PADDLE_READER}, for text: >= {self.of_paddle:g}; of {OWN_TEXT}, for binary files: >= {self.of_text:g}"

    def cases(self, _batch, _threads, _quick):
        return [Case(self.name, "lines/s", asked, form, 512, threads=1, field="lines_per_s")
                for form, asked in (("text", {PADDLE_READER: self.of_paddle}), ("binary", {OWN_TEXT: self.of_text}))]


@dataclass(frozen=True)
class AllReduce:
    """Workers of one host that add up vectors. One program measures ours and the peers at all sizes."""
    name: str
    description: str
    asked: dict  # peer -> size -> ratio
    sizes: dict  # its name -> bytes
    workers: tuple = (2, 4)
    rounds: int = 3

    def asks(self):
        def text(ratios):
            same_everywhere = ratios == dict.fromkeys(self.sizes, min(ratios.values()))
            return bounds(min(ratios.values()) if same_everywhere else ratios, ">=")
        return "asked " + "; ".join(f"of {peer}: {text(ratios)}" for peer, ratios in self.asked.items())

    def cases(self, workers):
        """One per size."""
        return [Case(self.name, "GB/s", {peer: ratios[size] for peer, ratios in self.asked.items() if size in ratios},
                     size, workers=workers, field="gb_per_s") for size in self.sizes]


@dataclass(frozen=True)
class Busy:
    """Two threads against one where others use the cores, too."""
    name: str
    description: str
    sizes: tuple  # (model, batch, steps)
    limit: float = 1.1  # the time of two threads, relative to one beside the same competitor
    unchanged: float = 1.02  # the time of two threads, relative to that of an earlier version
    rounds: int = 5

    def asks(self):
        return f"asked of one thread beside the same: <= {self.limit:g}; idle, of --before: <= {self.unchanged:g}"


@dataclass(frozen=True)
class Net:
    """Collectives and data parallel training between hosts. What a row has by default:"""
    name: str
    description: str
    networks: dict  # model -> (batch, unit, parameters)
    of_bound: dict = field(default_factory=lambda: {1: 0.93, 2: 0.9})  # row -> share, for BIG vectors on limited links
    of_ddp: float = 1.4
    slack: float = 1.1  # of a step, relative to the longer of computing and the wire, beside the last bucket
    bucket: int = 32 << 20
    rounds: int = 3

    def asks(self):
        return f"asked of the bound: >= {self.of_bound[1]:g} (all-reduce from 25 MB), >= {self.of_bound[2]:g} (others); " \
            f"of Gloo and Open MPI: >= 1; of torch DDP: >= {self.of_ddp:g}; CPU of Gloo: <= 1"

    def asked(self, row, size, rate):
        """Peer -> bound of the ratio."""
        if row == 3:
            return {"torch DDP": self.of_ddp, "bound": None}  # the latter follows from what a step takes alone
        if row == 4:
            return {"torch Gloo": 1.0, "Gloo": 1.0}
        share = {"bound": self.of_bound[row] if size >= 25 * MB else None} if rate != "unlimited" else {}
        return share | ({"torch Gloo": 1.0, "Gloo": 1.0, "Open MPI": 1.0} if row == 1 else
                        {"torch Gloo": None, "Open MPI": None})

    def tasks(self, row, quick):
        """(collective, bytes, calls) of a row."""
        if row == 2:
            return [(what, 25 * MB, 3 if quick else 7)
                    for what in ("reduce_scatter", "all_gather", "broadcast", "all_to_all")]
        calls = {1 << 10: (100, 200), 64 << 10: (50, 100), MB: (10, 30), 25 * MB: (3, 7), 100 * MB: (2, 4)}
        return [("all_reduce", size, calls[size][not quick]) for size in ([*calls] if row == 1 else [25 * MB, 100 * MB])]

    def hosts(self, quick):
        return [2] if quick else [2, 3, 4]

    def rates(self, row, quick):
        some = {1: ["1gbit", "unlimited"], 2: ["1gbit"], 3: ["1gbit"], 4: ["unlimited"]}[row]
        return some if quick else ["1gbit", "10gbit"] + ["unlimited"] * (row != 3)

    def ranks(self, row, quick):
        """Of each host."""
        return [1] if quick or row == 4 else [1, 2]

    def models(self, quick):
        return ["resnet50"] if quick else [*self.networks]

    def modes(self, model, quick):
        """Of the peer that trains."""
        if quick:
            return ["default"]
        return ["default", *["channels_last"] * (model != "bert-base"), "compile"]


@dataclass(frozen=True)
class Listed:
    """What a module of its own measures (rounds.LISTED)."""
    name: str
    description: str
    asked: str
    rounds: int = 3
    options: tuple = ()  # of batch, threads and models, those that can be given

    def asks(self):
        return "asked" + " " * (not self.asked.startswith(":")) + self.asked


RESNET_ASKED = {"avx512": 1.35, "avx2": 1.15}
DATA_PARALLEL_ASKED = {"torch DDP": 1.6, ONE_WORKER: 0.97, TWO_COPIES: None}
MESSAGES = {"1 KB": 1 << 10, "4 KB": 4 << 10, "16 KB": 16 << 10, "64 KB": 64 << 10, "256 KB": 256 << 10,
            "1 MB": 1 << 20, "4 MB": 4 << 20, "25 MB": 25 << 20, "100 MB": 100 << 20}


def training(torch):
    return {"torch": torch, "paddle": 1.0}


BENCHES = {b.name: b for b in [
    Bench("resnet50", "ResNet-50 v1.5, 224x224: a training step, momentum and L2", "images/s",
          training(RESNET_ASKED), (("resnet50", 16), ("resnet50", 32)), threads=(1, 2)),
    Bench("bert-base", "BERT-base, sequences of 128: a training step, adam", "tokens/s", training(1.2),
          (("bert-base", 8),), threads=(1, 2)),
    Bench("vgg16", "VGG16, 224x224: a training step, momentum", "images/s", training(1.2), (("vgg16", 16),)),
    Bench("tiny-mlp", "MLP 64-64-64-10: a training step, momentum; overhead is all", "steps/s", training(5.0),
          (("tiny-mlp", 8),), warmup=500, steps=4000, options=(("field", "steps_per_s"),)),
    Bench("mlp", "MLP 784-512-512-10: a training step, momentum", "steps/s", training(1.2),
          (("mlp", 64),), warmup=50, steps=600, options=(("field", "steps_per_s"),)),
    Bench("wide-deep", "Wide&Deep, 26 ids of 1,000,001 rows x 10: a training step, sgd, sparse gradients", "examples/s",
          training(1.2), (("wide-deep", 512),), warmup=20, steps=200),
    Bench("memory", "peak memory of the whole process in training (lower is better)", "MiB", training(0.75),
          (("resnet50", 32), ("bert-base", 8)), steps=1, rounds=1,
          options=(("field", "peak_mib"), ("lower_is_better", True))),
    Bench("resnet50-infer", "ResNet-50 inference with the test program", "images/s", {"torch": 1.2},
          (("resnet50", 1), ("resnet50", 16)), warmup=2, steps=12, options=(("test", True),)),
    Bench("limits", "what the machine gives: arithmetic by a matrix product, memory by a copy",
          {"sgemm": "GFLOP/s", "copy": "GB/s"}, {"torch": None}, (("sgemm", 2048), ("copy", 256)), threads=(1, 2),
          warmup=2, steps=20, options=(("test", True),)),
    Bench("dp-resnet50", "ResNet-50, data parallel: 2 workers, each with the batch", "images/s", DATA_PARALLEL_ASKED,
          (("resnet50", 16),), steps=4, options=(("workers", 2),)),
    Bench("dp-bert-base", "BERT-base, data parallel: 2 workers, each with the batch", "tokens/s", DATA_PARALLEL_ASKED,
          (("bert-base", 8),), steps=4, options=(("workers", 2),)),
    AllReduce("allreduce", "2 and 4 workers of one host add up vectors that live in shared memory",
              {"Open MPI": dict.fromkeys(MESSAGES, 1), "Gloo": {"64 KB": 100, "25 MB": 8}, "memcpy": {"100 MB": 0.9}},
              MESSAGES),
    Reader("reader", "MultiSlot text and its binary form, 13 numbers, 26 ids and a label a line: lines per second of a core", 3, 8),
    Launch("launch", "fleetrun with workers that meet, all-reduce once and end: wall time", {2: 0.3, 16: 1.0, 64: 3.0},
           most_for_peer=16),
    Busy("busy", "2 threads against 1 beside busy loops, beside 1,000 wake-ups a second, in a cgroup of 1.5 cores",
         (("resnet50", 2, 8), ("tiny-mlp", 8, 200001), ("mlp", 64, 1001))),
    Net("net", "2, 3 and 4 hosts with links of 1 and 10 Gbit/s and without limit: collectives, training, CPU used",
        {"bert-base": (8, "tokens/s", 110_106_428), "resnet50": (16, "images/s", 25_557_032),
         "vgg16": (16, "images/s", 138_357_544)}),
    Listed("amp", "ResNet-50 batch 32, BERT-base batch 8: a training step with amp (bf16), its speed and memory",
           "of own f32: >= 2 (amx), >= 1.6 (avx512_bf16), >= 0.9 (avx2), memory <= 0.65; of torch autocast: >= 1.3",
           options=("batch", "threads", "models")),
    Listed("recompute", "BERT-base batch 32: a training step with recompute, its memory and time",
           "of own without: memory <= 0.35, time <= 1.3; of torch checkpoint: memory <= 1, speed >= 1.3",
           options=("batch", "threads")),
    Listed("strategies", "BERT-base by two hosts with a link of 1 Gbit/s: what fp16_allreduce, dgc, localsgd and "
           "gradient_merge save (as root)", "of own dense: fp16_allreduce <= 0.625 of the time of communication, dgc <= 0.2 "
           "of the waiting; of the speed without a limit: localsgd >= 0.85, gradient_merge >= 0.9", options=("batch",)),
    Listed("sharding", "BERT-base by 2 and 4 workers of this machine: speed and memory of stages 1, 2 and 3",
           "of own data parallel: speed >= 0.95, 0.95, 0.85, memory of stage 3 <= 0.72 (2 workers), 0.5 (4); of own plan: "
           "memory <= 1.05; of torch FSDP2: speed >= 1.6"),
    Listed("pipeline", "BERT-base in 2 stages x 8 micro-batches by 2 workers of this machine, against one worker with the batch",
           "of one worker x 2 with the same micro-batches: >= 0.85"),
    Listed("does-not-fit", "BERT of 24 layers x 1,536 by 2 workers with 8 GiB each (control groups, as root; 16 GiB must be free)",
           ": plain, recompute and amp + recompute refused by the plan with what is missing; auto and sharding 3 + recompute: 20 "
           "steps, peak < 8192 MiB and within 5 % of the plan, the loss falls", rounds=1),
    Listed("learning", "accuracy of every strategy and of ten combinations, Fashion-MNIST and flowers, 2 and 4 workers; lars "
           "and lamb with a batch of 8,192; draws curves into build/bench-learning", "of plain data parallel, in the mean of "
           "3 seeds: >= 0.995 (flowers: >= 0.98); batch 8,192 of momentum, adam: >= 1", rounds=1),
    Listed("dgc-selection", "finding the 0.1 % largest of a gradient", "of two writes of the gradient: <= 1"),
    Listed("ps", "CTR-DNN from text on parameter servers, 1 server + 1 and 2 workers, a thread each",
           "of tensorflow: >= 1.8; of paddle 2.6: >= 3.5 (per CPU second: >= 3); sync of async: >= 0.9; half-async, geo of "
           "paddle 1.8: >= 3; no servers of torch's compute: >= 1; a worker < 200 MiB"),
    Listed("ps-table", "a server's table of 10 M rows x 16: keys/s of a core, alone and by RPC; memory of a row",
           ": >= 30 M (table), >= 8 M (RPC); < 1.25 of a row's record"),
    Listed("ps-auc", "Wide&Deep on ml-100k (fetched by pip) with a server: AUC with 1, 2, 4 workers", ": >= 0.777 (one process); "
           "of one process, in the mean of 3 seeds: sync within 0.001, async within 0.005", rounds=1),
    Listed("ps-many", "100 workers and 8 servers on this machine, 50 steps: start, memory, end",
           ": < 5 s until all train (C++); Python of as many `import numpy`: <= 1.5", rounds=2),
    Listed("ragged", "BERT-base and Transformer-base on real text, sequences of real lengths: real tokens per second of training, "
           "padding not counted; how fast batches of BERT are made", "of torch padded: >= 1.5; of torch nested and packed: >= 1.5; "
           "waiting for data < 1 % of a step", rounds=2),
    Listed("transformer-bleu", "a small Transformer writes names of iso-codes in Ukrainian, the same network, batches and steps as "
           "PyTorch's: BLEU of characters, names that are right", "of torch, in the mean of 3 seeds: >= 0.98 (BLEU), "
           ">= 0.95 (names); of own greedy: >= 1", rounds=1),
    Listed("tokenizer", "WordPiece over real text in English and in 14 languages, a vocabulary of 30,000: tokens per second of a core",
           "of tokenizers (Hugging Face): >= 3"),
    Listed("predict", "predicted time and memory of a step of four models with 12 combinations of strategies, 1, 2 and 4 workers "
           "and two hosts with a link of 1 Gbit/s (as root), against what is measured",
           ": median error <= 10 %, worst <= 25 %, memory <= 5 %", rounds=1),
    Listed("auto", "a step of what strategy.auto chooses in 4 settings (two workers here; over a link of 1 Gbit/s, as root; with "
           "little memory; 256 workers, predicted), against all combinations of recompute, amp, fp16_allreduce and sharding",
           ": of the best <= 1.05", rounds=1),
    Listed("predict-tables", "predicted images/s of ResNet-50 and VGG16 on 8, 16 and 32 V100 from the figure of one, against the "
           "published tables", ": within 10 %", rounds=1),
]}
