"""python -m paddle.distributed.launch ... = fleetrun ..., with this interpreter. Options of 1.x get their names of today."""
import os
import shutil
import sys


def fleetrun():
    """The path of the command: beside the interpreter's own commands, or on PATH."""
    for folder in (os.path.dirname(sys.executable), os.path.join(sys.prefix, "bin")):
        path = os.path.join(folder, "fleetrun")
        if os.access(path, os.X_OK) and not _is_script(path):
            return path
    path = shutil.which("fleetrun")
    if path is None:
        raise FileNotFoundError("the command fleetrun is not on PATH; in a build tree: source python/env.sh")
    return path


def _is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


# Options of 1.x: what fleetrun calls them; None: it finds that out by itself.
OLD_OPTIONS = {"--cluster_node_ips": "--ips", "--endpoints": "--servers", "--node_ip": None, "--started_port": None,
               "--start_port": None, "--print_config": None}
OLD_FLAGS = ("--use_paddlecloud",)


def translated(arguments):
    """The arguments with today's options; what follows the script is its own."""
    out, rest = [], list(arguments)
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option in OLD_FLAGS:
            continue
        if option not in OLD_OPTIONS:
            out.append(option + equals + value)
            if not equals and rest and not rest[0].startswith("-"):
                out.append(rest.pop(0))
            continue
        if not equals:
            if not rest:
                raise SystemExit(f"{option} needs a value")
            value = rest.pop(0)
        if OLD_OPTIONS[option] is not None and value:
            out.append(f"{OLD_OPTIONS[option]}={value}")
    return out + rest


def launch(arguments=None):
    arguments = translated(sys.argv[1:] if arguments is None else arguments)
    command = [fleetrun()]
    if not any(a == "--python" or a.startswith("--python=") for a in arguments):
        command.append(f"--python={sys.executable}")
    os.execv(command[0], command + list(arguments))


if __name__ == "__main__":
    launch()
