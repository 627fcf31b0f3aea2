"""WordPiece against Hugging Face's tokenizers, the same vocabulary and real text of this machine."""
import functools
import gettext
import pathlib
import tempfile

from contest import Comparison, in_turn
from report import Figure
from runner import PEERS, Failed
from suite import Case

PEER = "tokenizers"  # its package
TEXT_BYTES = 4 << 20


def measure_tokenizer(bench, runner, options):
    rounds = 1 if options.quick else bench.rounds
    with tempfile.TemporaryDirectory() as folder:
        for kind, lines in (("English", english), ("14 languages", many_languages)):
            yield measure_text(bench, runner, rounds, kind, lines, pathlib.Path(folder))


def measure_text(bench, runner, rounds, kind, lines, folder):
    figure = Figure(Case(bench.name, "tokens/s", {PEER: 3.0}, kind, threads=1, field="tokens_per_s"), PEER, rounds=rounds)
    text, vocab = folder / "text", folder / "vocab.txt"
    text.write_text("\n".join(within(lines(), TEXT_BYTES)), encoding="utf-8")
    players = {"fleetx": functools.partial(run, runner, [runner.build / "bench/bench_tokenizer", vocab, text])}
    peers = {}
    if missing := runner.missing(PEER):
        figure.note(missing)
    else:
        peers = {PEER: ""}
        players[PEER] = functools.partial(run, runner, [runner.interpreter(PEER), PEERS / "hf_tokenizer.py", vocab, text])
    try:
        runner.together([{"command": [runner.tool, "vocab", "wordpiece", text, "--size", 30000, "--alphabet", 3000,
                                      "-o", vocab]}])
    except Failed as failure:
        figure.note(f"no vocabulary: {failure}")
        return [figure]
    return in_turn(f"{bench.name}, {kind}", players, [Comparison(figure, "fleetx", peers)], rounds)


def run(runner, command):
    return runner.figures(command, runner.cores(1), 1)


def within(lines, most):
    """Lines of at most so many bytes."""
    size = 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > most:
            return
        yield line


def english():
    """Licences and changes of the packages that are installed."""
    files = sorted(pathlib.Path("/usr/share/common-licenses").glob("*")) + sorted(pathlib.Path("/usr/share/doc").glob("*/copyright"))
    for file in files:
        if not file.is_symlink() and file.is_file():
            yield from (line for line in file.read_text(errors="ignore").split("\n") if line.isprintable())


def many_languages():
    """Message catalogues."""
    for language in ["de", "fr", "ja", "zh_CN", "ko", "ru", "ar", "hi", "th", "vi", "el", "he", "tr", "pl"]:
        lines = catalogue_lines(language)
        yield from within(lines, TEXT_BYTES // 14)


def catalogue_lines(language):
    for file in sorted(pathlib.Path(f"/usr/share/locale/{language}/LC_MESSAGES").glob("*.mo")):
        with open(file, "rb") as catalogue:
            try:
                texts = gettext.GNUTranslations(catalogue)._catalog.values()
            except (OSError, UnicodeDecodeError, ValueError):
                continue
        for text in texts:
            yield from (line for line in text.split("\n") if line.isprintable()) if isinstance(text, str) else ()
