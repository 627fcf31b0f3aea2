"""A neighbour on the same cores: computes without end, or wakes up 1,000 times a second to compute half a millisecond.

usage: competitor.py loop|wakes SECONDS. It also ends when the process that started it does."""
import os
import sys
import time

PERIOD = 1e-3


def compute(until):
    while time.monotonic() < until:
        pass


def main():
    kind, seconds = sys.argv[1], float(sys.argv[2])
    parent, end = os.getppid(), time.monotonic() + seconds
    while time.monotonic() < end and os.getppid() == parent:
        if kind == "loop":
            compute(time.monotonic() + 0.1)
        else:
            compute(time.monotonic() + PERIOD / 2)
            time.sleep(PERIOD / 2)


if __name__ == "__main__":
    main()
