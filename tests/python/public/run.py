"""Runs public packages that were written for PaddlePaddle, unchanged, on FleetX, and counts which ones train.

    source python/env.sh; python tests/python/public/run.py FOLDER [FAMILY...]

Packages come by `pip download` into FOLDER, with what they need themselves. A family: paddlerec, paddleclas, paddlenlp,
paddlepalm, plsc. Each prints a line for every script: RUNS, or STOPS and the message. LIMIT=seconds of one (60)."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NEEDED = ("pandas==2.0.3 scipy==1.11.4 scikit-learn==1.3.2 pillow nltk tqdm colorlog opencv-python-headless==4.8.1.78 sentencepiece "
          "regex easydict joblib threadpoolctl pytz tzdata python-dateutil cloudpickle jieba seqeval multiprocess dill h5py colorama "
          "protobuf==3.20.3 psutil requests six pyyaml").split()
PACKAGES = {"paddlerec": "paddle-rec==0.1.0", "paddleclas": "paddleclas==2.6.0", "paddlenlp": "paddlenlp==2.0.0",
            "paddlepalm": "paddlepalm==2.0.2", "plsc": "plsc==0.1.1"}
# What stops by itself: a file that the package lacks, a name that it does not define, weights from the net.
OWN_FAULTS = {"demo_movie_recommand": "its model.py is not in the package", "swin_transformer_v2": "output_dimensions is not defined",
              "cae": "needs a setting of a configuration", "uniformer": "loads weights from the net"}


def fetch(folder, family):
    """The unpacked package."""
    home = folder / family
    if not home.is_dir():
        subprocess.check_call([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--python-version", "3.7",
                               "--only-binary=:all:", PACKAGES[family], "-d", str(folder / "wheels")])
        wheel = next((folder / "wheels").glob(f"{PACKAGES[family].split('==')[0].replace('-', '_')}-*.whl"))
        subprocess.check_call([sys.executable, "-m", "zipfile", "-e", str(wheel), str(home)])
    return home


def run(command, place, environment):
    """(does it run, its last line)"""
    try:
        done = subprocess.run(command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=float(os.environ.get("LIMIT", 60)))
    except subprocess.TimeoutExpired:
        return False, f"has not ended after {os.environ.get('LIMIT', 60)} s"
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "except:" in line]
    return done.returncode == 0, (errors or lines or [""])[-1].strip()


def paddlerec(home, environment):
    """Every model, by its own configuration and with its own sample data, trained and tested."""
    for config in sorted(home.glob("paddlerec/models/**/config*.yaml")):
        name = "_".join(config.parent.relative_to(home / "paddlerec/models").parts)
        yield name, run([sys.executable, "-m", "paddlerec.run", "-m", str(config.relative_to(home))], home, environment)


def parts(script):
    """A driver that prints RUNS or STOPS for each of its networks."""
    def family(home, environment):
        done = subprocess.run([sys.executable, str(HERE / script), str(home)], cwd=home, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        for line in done.stdout.splitlines():
            kind, _, rest = line.partition(" ")
            if kind in ("RUNS", "STOPS"):
                name, _, message = rest.partition(" ")
                yield name, (kind == "RUNS", message)
    return family


def drivers(script, *cases):
    """A driver that is called for each case, and ends with an error where it stops."""
    def family(home, environment):
        for case in cases:
            yield case, run([sys.executable, str(HERE / script), *case.split()], home, environment)
    return family


FAMILIES = {
    "paddlerec": paddlerec, "paddleclas": parts("paddleclas_networks.py"), "paddlenlp": parts("paddlenlp_networks.py"),
    "paddlepalm": drivers("paddlepalm_tasks.py", *(f"{task} {net}" for net in ("ernie", "bert")
                                                    for task in ("cls", "match", "ner", "mrc", "mlm", "pair"))),
    "plsc": drivers("plsc_losses.py", "softmax", "arcface"),
}


def main():
    folder, chosen = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or list(FAMILIES)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "needed").is_dir():
        subprocess.check_call([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder / "needed"), *NEEDED])
    for family in chosen:
        home, counts = fetch(folder, family), [0, 0, 0]
        path = os.pathsep.join([str(home), os.environ["PYTHONPATH"], str(folder / "needed")])
        for name, (runs, message) in FAMILIES[family](home, dict(os.environ, PYTHONPATH=path)):
            own = next((why for key, why in OWN_FAULTS.items() if key in name), None) if not runs else None
            counts[0 if runs else 2 if own else 1] += 1
            print(f"{family:11} {'RUNS ' if runs else 'STOPS'} {name:45} {own or ('' if runs else message)[:160]}", flush=True)
        print(f"{family}: {counts[0]} run, {counts[1]} stop, {counts[2]} stop by faults of their own", flush=True)


if __name__ == "__main__":
    main()
