"""Files by their address. Nothing is downloaded: what is already on this machine is found."""
import os
import shutil

from paddle._native import native
from paddle.dataset.common import md5file

__all__ = ["get_weights_path_from_url", "get_path_from_url"]

WEIGHTS_HOME = os.path.join(os.path.expanduser("~"), ".cache", "paddle", "hapi", "weights")
_ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")


def _unpacked(path):
    """The folder of an archive's contents, unpacked beside it; any other file itself."""
    ending = next((e for e in _ARCHIVES if path.endswith(e)), None)
    if ending is None:
        return path
    folder = path[:-len(ending)]
    if not os.path.isdir(folder):
        shutil.unpack_archive(path, folder + ".part")
        inside = os.listdir(folder + ".part")
        only = os.path.join(folder + ".part", inside[0]) if len(inside) == 1 else ""
        if os.path.isdir(only):
            os.rename(only, folder)
            os.rmdir(folder + ".part")
        else:
            os.rename(folder + ".part", folder)
    return folder


def get_path_from_url(url, root_dir, md5sum=None, check_exist=True):
    """The path of the file below root_dir that `url` names; an archive is unpacked. check_exist=False, which would
    fetch it again, is refused."""
    if not check_exist:
        raise native.UnsupportedError("get_path_from_url: check_exist=False is not here; FleetX downloads nothing")
    path = os.path.join(root_dir, url.split("/")[-1].split("?")[0])
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} is not there, and FleetX downloads nothing by itself: fetch {url} and put it there")
    if md5sum and md5file(path) != md5sum:
        raise native.CorruptFileError(f"{path}: its md5 is not {md5sum}")
    return _unpacked(path)


def get_weights_path_from_url(url, md5sum=None):
    return get_path_from_url(url, WEIGHTS_HOME, md5sum)


def _get_unique_endpoints(trainer_endpoints):
    """One endpoint of each host."""
    first = {}
    for endpoint in trainer_endpoints:
        first.setdefault(endpoint.split(":")[0], endpoint)
    return set(first.values())
