"""What the peers' programs have in common: their command line, the clock, and the line they print."""
import argparse
import json
import resource
import time


def arguments(models, modes, flags=()):
    parser = argparse.ArgumentParser(allow_abbrev=False, description="One peer on one workload; bench/run calls it.")
    parser.add_argument("model", choices=models)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1, help="of data parallel training, each with the batch")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--test", action="store_true", help="inference instead of training")
    parser.add_argument("--mode", choices=modes, default=modes[0])
    for flag in flags:
        parser.add_argument(f"--{flag}", action="store_true")
    return parser.parse_args()


def report(step, options, items, version):
    """Runs the steps and prints the best one and the sum. `step` returns the loss as a float, or None."""
    best, total = float("inf"), 0.0
    for i in range(options.warmup + options.steps):
        start = time.perf_counter()
        loss = step()
        if i >= options.warmup:
            took = time.perf_counter() - start
            best, total = min(best, took), total + took
    print(json.dumps({
        "best_s": best,
        "total_s": total,
        "items_per_s": items / best,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "loss": loss,
        "version": version,
    }))
