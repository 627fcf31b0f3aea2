"""python -m paddle.distributed.launch ... = fleetrun ..., with this interpreter."""
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


def launch(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    command = [fleetrun()]
    if not any(a == "--python" or a.startswith("--python=") for a in arguments):
        command.append(f"--python={sys.executable}")
    os.execv(command[0], command + list(arguments))


if __name__ == "__main__":
    launch()
