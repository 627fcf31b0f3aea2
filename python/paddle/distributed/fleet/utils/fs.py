"""Files of this machine, and files in HDFS, under the calls that the original has for all kinds of file systems."""
import contextlib
import os
import shutil
import signal
import subprocess
import urllib.parse

from paddle._refuse import refuse

class CommandError(Exception):
    """command, code, stderr -- where a command led to the error"""

    def __init__(self, message="", command=None, code=None, stderr=""):
        super().__init__(message)
        self.command, self.code, self.stderr = command, code, stderr


class ExecuteError(CommandError):
    """A command that failed."""


class FSTimeOut(CommandError):
    """A command that did not end in time."""


class FSFileExistsError(CommandError):
    pass


class FSFileNotExistsError(CommandError):
    pass


class FSShellCmdAborted(ExecuteError):
    """A command that was aborted (code 134)."""


class LocalFS:
    def ls_dir(self, fs_path):
        """(folders, files) in a folder."""
        names = sorted(os.listdir(fs_path)) if self.is_exist(fs_path) else []
        folders = [n for n in names if os.path.isdir(os.path.join(fs_path, n))]
        return folders, [n for n in names if n not in folders]

    def list_dirs(self, fs_path):
        return self.ls_dir(fs_path)[0]

    def mkdirs(self, fs_path):
        os.makedirs(fs_path, exist_ok=True)

    def delete(self, fs_path):
        if os.path.isdir(fs_path) and not os.path.islink(fs_path):
            shutil.rmtree(fs_path)
        elif self.is_exist(fs_path):
            os.remove(fs_path)

    def rename(self, fs_src_path, fs_dst_path):
        os.rename(fs_src_path, fs_dst_path)

    def mv(self, src_path, dst_path, overwrite=False, test_exists=False):
        if not self.is_exist(src_path):
            raise FSFileNotExistsError(src_path)
        if self.is_exist(dst_path):
            if not overwrite:
                raise FSFileExistsError(dst_path)
            self.delete(dst_path)
        self.rename(src_path, dst_path)

    def touch(self, fs_path, exist_ok=True):
        if self.is_exist(fs_path) and not exist_ok:
            raise FSFileExistsError(fs_path)
        with open(fs_path, "a"):
            pass

    def is_file(self, fs_path):
        return os.path.isfile(fs_path)

    def is_dir(self, fs_path):
        return os.path.isdir(fs_path)

    def is_exist(self, fs_path):
        return os.path.exists(fs_path)

    def need_upload_download(self):
        return False


_ABORTED = 134
# Of 1.x and of later versions.
_NEAREST = {"ls": "ls_dir", "lsr": "ls_dir", "makedirs": "mkdirs", "upload_dir": "upload", "list_files_info": "ls_dir"}


class HDFSClient:
    """Files in HDFS, by the command line of a Hadoop that is installed: `hadoop_home`/bin/hadoop fs ... Paths may be
    patterns, as Hadoop reads them.

    configs -- Hadoop's settings by name ("fs.default.name", "hadoop.job.ugi", ...)
    time_out -- milliseconds that a command may take (every command is tried once: sleep_inter changes nothing)
    """

    def __init__(self, hadoop_home, configs=None, time_out=300000, sleep_inter=1000):
        self._hadoop = os.path.join(str(hadoop_home), "bin", "hadoop")
        if not (os.path.isfile(self._hadoop) and os.access(self._hadoop, os.X_OK)):
            raise ValueError(f"HDFSClient: hadoop_home={str(hadoop_home)!r}: there is no program {self._hadoop}; give "
                             "the folder of a Hadoop that is installed on this machine")
        if time_out <= 0:
            raise ValueError(f"HDFSClient: time_out={time_out} must be above 0 (milliseconds)")
        self._settings = [word for key, value in (configs or {}).items() for word in ("-D", f"{key}={value}")]
        self._seconds = time_out / 1000

    def __getattr__(self, name):
        if name in _NEAREST:
            raise refuse(f"HDFSClient.{name}", f"HDFSClient.{_NEAREST[name]}")
        raise AttributeError(f"HDFSClient has no '{name}'")

    def ls_dir(self, fs_path):
        """(folders, files) in a folder."""
        if not self.is_exist(fs_path):
            return [], []
        folders, files = [], []
        for line in _text(self._run("-ls", fs_path)).splitlines():
            words = line.split(None, 7)  # drwxr-xr-x - user group 0 2026-01-31 12:00 /folder/name
            if len(words) == 8 and words[0][0] in "d-":
                (folders if words[0][0] == "d" else files).append(os.path.basename(words[7]))
        return folders, files

    def list_dirs(self, fs_path):
        return self.ls_dir(fs_path)[0]

    def is_exist(self, fs_path):
        return self._test("-e", fs_path)

    def is_dir(self, fs_path):
        return self._test("-d", fs_path)

    def is_file(self, fs_path):
        return self.is_exist(fs_path) and not self.is_dir(fs_path)

    def upload(self, local_path, fs_path, multi_processes=5, overwrite=False):
        """A file; of a folder what is in it, into the folder `fs_path`."""
        local_path = str(local_path)
        if not os.path.exists(local_path):
            raise FSFileNotExistsError(f"upload: there is no local file or folder {local_path} (it comes first)")
        if overwrite and self.is_exist(fs_path):
            was_folder = self.is_dir(fs_path)
            self.delete(fs_path)
            if was_folder:
                self.mkdirs(fs_path)
        sources = [local_path]
        if os.path.isdir(local_path):
            self.mkdirs(fs_path)
            sources = [os.path.join(local_path, name) for name in sorted(os.listdir(local_path))]
        if sources:
            self._run("-put", *map(_address, sources), fs_path)

    def download(self, fs_path, local_path, multi_processes=5, overwrite=False):
        """A file; of a folder what is in it, into the folder `local_path`."""
        local_path = str(local_path)
        if not self.is_exist(fs_path):
            raise FSFileNotExistsError(f"{fs_path} does not exist")
        sources, names = [fs_path], [os.path.basename(fs_path)]
        if self.is_dir(fs_path):
            os.makedirs(local_path, exist_ok=True)
            names = sum(self.ls_dir(fs_path), [])
            sources = [_literal(fs_path.rstrip("/") + "/" + name) for name in names]
        if overwrite:
            for name in names:
                LocalFS().delete(os.path.join(local_path, name) if os.path.isdir(local_path) else local_path)
        if sources:
            self._run("-get", *sources, _address(local_path))

    def mkdirs(self, fs_path):
        self._run("-mkdir", "-p", fs_path)

    def delete(self, fs_path):
        if self.is_exist(fs_path):
            self._run("-rm", "-r", fs_path)

    def rename(self, fs_src_path, fs_dst_path):
        self._run("-mv", fs_src_path, fs_dst_path)

    def mv(self, fs_src_path, fs_dst_path, overwrite=False, test_exists=True):
        if test_exists and not self.is_exist(fs_src_path):
            raise FSFileNotExistsError(f"{fs_src_path} does not exist")
        if overwrite:
            self.delete(fs_dst_path)
        elif test_exists and self.is_exist(fs_dst_path):
            raise FSFileExistsError(f"{fs_dst_path} exists; overwrite=True replaces it")
        self.rename(fs_src_path, fs_dst_path)

    def touch(self, fs_path, exist_ok=True):
        if not self.is_exist(fs_path):
            self._run("-touchz", fs_path)
        elif not exist_ok:
            raise FSFileExistsError(f"{fs_path} exists")

    def cat(self, fs_path=None):
        """The text of a file without its last line's end; of anything else "", as in the original."""
        return _text(self._run("-cat", fs_path)).removesuffix("\n") if self.is_file(fs_path) else ""

    def need_upload_download(self):
        return True

    def _test(self, flag, fs_path):
        """`-test` answers "no" and "I cannot say" with the same code: its errors tell. It also logs there."""
        command, code, _, errors = self._execute("-test", flag, fs_path)
        if code == 1 and not any(_could_not_ask(line) for line in errors.splitlines()):
            return False
        _check(command, code, errors)
        return True

    def _run(self, *words):
        command, code, output, errors = self._execute(*words)
        _check(command, code, errors)
        return output

    def _execute(self, *words):
        """(the command without settings, which have a password; its code, output, errors)"""
        words = [str(word) for word in words]
        command = " ".join([self._hadoop, "fs", *words])
        child = subprocess.Popen([self._hadoop, "fs", *self._settings, *words], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            output, errors = child.communicate(timeout=self._seconds)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            _, errors = child.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise FSTimeOut(f"`{command}` has not ended after {self._seconds:g} s (time_out) and was stopped",
                                command, None, _text(errors)) from None
            raise
        return command, child.returncode, output, _text(errors)


def _text(output):
    return output.decode(errors="replace")


def _says_missing(line):
    return "No such file or directory" in line or "does not exist" in line


def _could_not_ask(line):
    if line.startswith(("test:", "-test:")):
        return not _says_missing(line)
    return any(word in line for word in ("Error", "ERROR", "FATAL", "Exception"))


def _check(command, code, errors):
    if code == 0:
        return
    lines = [line for line in errors.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if not line[0].isspace()), "it printed no error")
    kind = FSShellCmdAborted if code == _ABORTED else ExecuteError
    if _says_missing(last):
        kind = FSFileNotExistsError
    elif "File exists" in last:
        kind = FSFileExistsError
    status = f"signal {-code}" if code < 0 else f"code {code}"
    raise kind(f"`{command}` ended with {status}: {last}", command, code, errors)


def _address(local_path):
    """Hadoop takes the name of a local file for an address ..."""
    return urllib.parse.quote(local_path, safe="/._-~+=,@")


def _literal(fs_path):
    """... and names in HDFS for patterns."""
    return "".join("\\" + c if c in "*?[]{}\\" else c for c in fs_path)
