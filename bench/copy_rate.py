"""The rate at which this machine copies memory, as bytes read plus bytes written, in GB/s."""
import argparse
import ctypes
import json
import threading
import time


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--batch", type=int, default=256, help="MiB that are copied")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--test", action="store_true", help="as in `fleetx bench`; there is no other way")
    options = parser.parse_args()
    size = (options.batch << 20) // options.threads
    parts = [(ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)) for _ in range(options.threads)]
    best = float("inf")
    for step in range(options.warmup + options.steps):
        # ctypes lets go of the interpreter's lock while it copies.
        threads = [threading.Thread(target=ctypes.memmove, args=(to, source, size)) for to, source in parts]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if step >= options.warmup:
            best = min(best, time.perf_counter() - start)
    print(json.dumps({"best_s": best, "items_per_s": 2 * size * options.threads / best / 1e9}))


if __name__ == "__main__":
    main()
