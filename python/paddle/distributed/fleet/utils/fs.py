"""Files of this machine under the calls that the original has for all kinds of file systems."""
import os
import shutil

from paddle._refuse import refuse


class FSFileExistsError(Exception):
    pass


class FSFileNotExistsError(Exception):
    pass


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


class HDFSClient:
    def __init__(self, hadoop_home=None, configs=None, time_out=300000, sleep_inter=1000):
        raise refuse("paddle.distributed.fleet.utils.fs.HDFSClient", "LocalFS, and fleetx.utils.Downloader for HTTP",
                     "HDFS is not here")
