"""What is measured: one Case per figure of ours, with the ratios that are asked of it."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    bench: str
    model: str
    batch: int
    threads: int
    unit: str
    asked: object  # of PyTorch: a ratio, or one per instruction set; None: nothing is asked
    warmup: int
    steps: int
    test: bool = False
    field: str = "items_per_s"  # of the lines that ours and the peers print
    lower_is_better: bool = False

    def __str__(self):
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.bench}{'' if self.model in self.bench else ' ' + self.model} batch {self.batch}, {threads}"

    def better(self, a, b):
        return a < b if self.lower_is_better else a > b

    def ratio_asked(self, peer, isa):
        """The bound on ours / peer, or None. Of other peers than PyTorch: no worse than they are."""
        if self.asked is None:
            return None
        if peer != "torch":
            return 1.0
        if isinstance(self.asked, dict):
            return self.asked["avx512" if isa.startswith(("avx512", "amx")) else "avx2"]
        return self.asked

    def holds(self, ratio, bound):
        return ratio <= bound if self.lower_is_better else ratio >= bound


@dataclass(frozen=True)
class Bench:
    name: str
    description: str
    unit: object  # or one per model
    asked: object
    sizes: tuple  # (model, batch) pairs
    threads: tuple = (1,)
    warmup: int = 1
    steps: int = 3
    rounds: int = 3
    options: tuple = ()  # further fields of Case

    def asks(self):
        if self.asked is None:
            return "nothing is asked"
        if isinstance(self.asked, dict):
            return "asked of torch: " + ", ".join(f">= {ratio} ({isa})" for isa, ratio in self.asked.items())
        return f"asked of torch: {'<=' if dict(self.options).get('lower_is_better') else '>='} {self.asked}"

    def cases(self, batch, threads, quick):
        sizes = dict.fromkeys((model, batch or size) for model, size in self.sizes)
        steps = max(2, self.steps // 4) if quick else self.steps
        units = self.unit if isinstance(self.unit, dict) else {model: self.unit for model, _ in sizes}
        return [Case(self.name, model, size, count, units[model], self.asked, self.warmup, steps, **dict(self.options))
                for model, size in sizes for count in ((threads,) if threads else self.threads)]


RESNET_ASKED = {"avx512": 1.35, "avx2": 1.15}

BENCHES = {b.name: b for b in [
    Bench("resnet50", "ResNet-50 v1.5, 224x224: a training step, momentum and L2", "images/s", RESNET_ASKED,
          (("resnet50", 16), ("resnet50", 32)), threads=(1, 2)),
    Bench("bert-base", "BERT-base, sequences of 128: a training step, adam", "tokens/s", 1.2,
          (("bert-base", 8),), threads=(1, 2)),
    Bench("vgg16", "VGG16, 224x224: a training step, momentum", "images/s", 1.2, (("vgg16", 16),)),
    Bench("tiny-mlp", "MLP 64-64-64-10: a training step, momentum; overhead is all", "steps/s", 5.0,
          (("tiny-mlp", 8),), warmup=500, steps=4000, options=(("field", "steps_per_s"),)),
    Bench("mlp", "MLP 784-512-512-10: a training step, momentum", "steps/s", 1.2,
          (("mlp", 64),), warmup=50, steps=600, options=(("field", "steps_per_s"),)),
    Bench("wide-deep", "Wide&Deep, 26 ids of 1,000,001 rows x 10: a training step, sgd, sparse gradients", "examples/s",
          1.2, (("wide-deep", 512),), warmup=20, steps=200),
    Bench("memory", "peak memory of the whole process in training (lower is better)", "MiB", 0.75,
          (("resnet50", 32), ("bert-base", 8)), steps=1, rounds=1,
          options=(("field", "peak_mib"), ("lower_is_better", True))),
    Bench("resnet50-infer", "ResNet-50 inference with the test program", "images/s", 1.2,
          (("resnet50", 1), ("resnet50", 16)), warmup=2, steps=12, options=(("test", True),)),
    Bench("limits", "what the machine gives: arithmetic by a matrix product, memory by a copy",
          {"sgemm": "GFLOP/s", "copy": "GB/s"}, None, (("sgemm", 2048), ("copy", 256)), threads=(1, 2), warmup=2,
          steps=20, options=(("test", True),)),
]}
