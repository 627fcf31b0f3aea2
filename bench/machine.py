"""Names the machine that figures were measured on."""
import os
import pathlib
import re

ISAS = {"amx_tile": "AMX", "avx512f": "AVX-512", "avx2": "AVX2"}  # flag of /proc/cpuinfo -> name, highest first


def machine_name(cpuinfo=None):
    """CPU model, cores and highest instruction set: 'Intel Xeon Platinum 8481C (model 143), 2 cores, AMX'."""
    text = pathlib.Path("/proc/cpuinfo").read_text() if cpuinfo is None else cpuinfo
    facts = dict(re.findall(r"^(model name|model|flags)[ \t]*:[ \t]*(.*)$", text, re.MULTILINE))
    model = re.sub(r"\((R|TM)\)|@.*", "", facts.get("model name", "unknown CPU"))
    number = f" (model {facts['model']})" if "model" in facts else ""
    flags = facts.get("flags", "").split()
    isa = next((name for flag, name in ISAS.items() if flag in flags), "SSE")
    cores = os.cpu_count() if cpuinfo is None else len(re.findall(r"^processor\b", text, re.MULTILINE))
    return f"{' '.join(model.split())}{number}, {cores} core{'s' * (cores != 1)}, {isa}"
