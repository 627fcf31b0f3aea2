"""python -m paddle.distributed.launch_ps ... = fleetrun with servers; two of them and two workers unless it is said."""
import sys

from paddle.distributed.launch import launch as _launch


def launch(arguments=None):
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    told = {a.partition("=")[0] for a in arguments if a.startswith("--")}
    numbers = {"--server_num": ("--servers", "--endpoints"), "--worker_num": ("--workers",)}
    missing = [f"{name}=2" for name, others in numbers.items() if not told & {name, *others}]
    _launch(missing + arguments)


if __name__ == "__main__":
    launch()
