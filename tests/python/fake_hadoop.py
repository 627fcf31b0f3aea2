#!/usr/bin/env python3
"""`hadoop fs` over the folder `cluster` of a test, as <folder>/installed/bin/hadoop. Words of every command go into the
file `calls`. A file `fail` (command, code and errors) makes a command fail, a file `hang` (a command) makes it hang."""
import os
import pathlib
import shutil
import sys
import time
import urllib.parse

ROOT = pathlib.Path(sys.argv[0]).parents[2]
SETTINGS = {"fs.default.name": "hdfs://cluster:9000", "hadoop.job.ugi": "me,secret"}


def fail(text, code=1):
    sys.exit(print(text, file=sys.stderr) or code)


def inside(path):
    path = path.removeprefix(SETTINGS["fs.default.name"])
    return ROOT / "cluster" / path.lstrip("/")


def local(address):
    return pathlib.Path(urllib.parse.unquote(address))


def copy(source, target, name):
    target = target / source.name if target.is_dir() else target
    if target.exists():
        fail(f"{name}: `{target}': File exists")
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def main():
    words, settings = sys.argv[1:], {}
    if words.pop(0) != "fs":
        fail("only fs is here", 2)
    while words[0] == "-D":
        key, _, value = words[1].partition("=")
        settings[key] = value
        words = words[2:]
    with open(ROOT / "calls", "a") as calls:
        print(*words, file=calls)
    print("WARN util.NativeCodeLoader: Unable to load native-hadoop library", file=sys.stderr)
    command, *words = words
    name = command[1:]
    if settings != SETTINGS:
        fail(f"{name}: wrong settings {settings}", 255)
    if (ROOT / "hang").exists() and (ROOT / "hang").read_text() == command:
        (ROOT / "new_pid").write_text(str(os.getpid()))
        (ROOT / "new_pid").rename(ROOT / "pid")
        time.sleep(600)
    if (ROOT / "fail").exists():
        failing, code, errors = (ROOT / "fail").read_text().split(" ", 2)
        if failing == command:
            fail(errors, int(code))
    if command == "-test":
        path = inside(words[1])
        sys.exit(not (path.is_dir() if words[0] == "-d" else path.exists()))
    if command == "-ls":
        paths = sorted(inside(words[0]).iterdir())
        print(f"Found {len(paths)} items")
        for path in paths:
            print("drwxr-xr-x   -" if path.is_dir() else "-rw-r--r--   3", "me group", f"{path.stat().st_size:>10}",
                  "2026-01-31 12:00", words[0].rstrip("/") + "/" + path.name)
    elif command == "-cat":
        sys.stdout.buffer.write(inside(words[0]).read_bytes())
    elif command == "-get":
        for word in words[:-1]:
            source = inside(word.replace("\\", ""))
            if not source.exists():
                fail(f"get: `{word}': No such file or directory")
            copy(source, local(words[-1]), name)
    elif command == "-put":
        for word in words[:-1]:
            copy(local(word), inside(words[-1]), name)
    elif command == "-mkdir" and words[0] == "-p":
        inside(words[1]).mkdir(parents=True, exist_ok=True)
    elif command == "-rm" and words[0] == "-r":
        path = inside(words[1])
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif command == "-mv":
        if not inside(words[0]).exists():
            fail(f"mv: `{words[0]}': No such file or directory")
        if inside(words[1]).is_file():
            fail(f"mv: `{words[1]}': File exists")
        shutil.move(inside(words[0]), inside(words[1]))
    elif command == "-touchz":
        inside(words[0]).touch()
    else:
        fail(f"{command}: Unknown command", 255)


main()
