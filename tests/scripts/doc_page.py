"""Listings of a page of docs/ as files, and a compiler for them that knows a build of the library."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def listings(page):
    """{path: code} of the sections whose headings name a source file: all their C++ blocks."""
    files = {}
    for section in re.split(r"^## ", (ROOT / "docs" / page).read_text(), flags=re.M)[1:]:
        heading, _, body = section.partition("\n")
        path = re.search(r"`([\w/]+\.(?:cc|h))`", heading)
        if path:
            files[path.group(1)] = "".join(re.findall(r"```cpp\n(.*?)```", body, flags=re.S))
    return files


class Compiler:
    def __init__(self, build, compiler):
        self.build, self.compiler = pathlib.Path(build), compiler

    def __call__(self, *arguments):
        library = self.build / "fleetx"
        subprocess.run([self.compiler, "-std=c++20", "-O0", f"-I{ROOT}", f"-I{library}", f"-I{self.build / 'made/include'}",
                        "-fopenmp", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", *map(str, arguments),
                        f"-L{library}", "-lfleetx", f"-Wl,-rpath,{library}"], check=True)
