"""Public data sets; the work is done by fleetx/data/download.h."""
from typing import Optional

from fleetx import _job
from paddle._native import native


class Downloader:
    """Fetches a data set that a yaml file describes: a folder with filelist.txt (lines `part-0.tar md5`), meta.txt
    (what every machine needs) and the archives, on a server (`bos_path: http://...`) or in HDFS (`data_path`, `hadoop_home`,
    `fs.default.name`, `hadoop.job.ugi`, `java_home`)."""

    def download_from_bos(self, fs_yaml: Optional[str] = None, local_path: str = "./", shard_num: int = -1,
                          shard_id: int = -1, process_num: int = 10, sharded: bool = False,
                          fs_yml: Optional[str] = None) -> str:
        """Returns `local_path` when everything is there. What is there already is not fetched again, what was
        interrupted goes on; of the workers of one machine one fetches and the others wait.

        fs_yaml, fs_yml -- address or path of the yaml
        shard_num, shard_id -- only every shard_num-th archive; `sharded=True`: this machine's share of them
        process_num -- archives that are fetched at the same time
        """
        return self._download("download_from_bos", fs_yaml, fs_yml, local_path, shard_num, shard_id, process_num,
                              sharded)

    def download_from_hdfs(self, fs_yaml: Optional[str] = None, local_path: str = "./", shard_num: int = -1,
                           shard_id: int = -1, process_num: int = 10, sharded: bool = False,
                           fs_yml: Optional[str] = None) -> str:
        """As download_from_bos, through `hadoop_home`/bin/hadoop: a Hadoop that is installed on this machine. A file
        that was interrupted is fetched anew."""
        return self._download("download_from_hdfs", fs_yaml, fs_yml, local_path, shard_num, shard_id, process_num,
                              sharded)

    def _download(self, call, fs_yaml, fs_yml, local_path, shard_num, shard_id, process_num, sharded) -> str:
        if fs_yaml is not None and fs_yml is not None and fs_yaml != fs_yml:
            raise native.InvalidArgumentError(f"fs_yaml={fs_yaml!r} and fs_yml={fs_yml!r} differ; give one")
        yaml = fs_yaml if fs_yaml is not None else fs_yml
        if yaml is None:
            raise native.InvalidArgumentError(f"{call}: give fs_yaml, the address of the yaml file")
        if sharded:
            if shard_num > 0:
                raise native.InvalidArgumentError(f"{call}: give either sharded or shard_num")
            shard_id, shard_num = _job.node()
        done = native.download(yaml, str(local_path), shard_num, shard_id, process_num,
                               from_hdfs=call == "download_from_hdfs")
        print(f"{local_path}: {done['fetched']} files fetched ({done['unpacked']} unpacked), {done['kept']} were there",
              flush=True)
        return local_path


class ImageNetDownloader(Downloader):
    """The small ImageNet of the documents."""

    YAML = "https://fleet.bj.bcebos.com/test/loader/small_imagenet.yaml"

    def download_from_bos(self, local_path: str = "./", fs_yaml: Optional[str] = None, **options) -> str:
        """As Downloader.download_from_bos; without fs_yaml from the public address (FLEETX_MIRROR names another
        server with the same files)."""
        if fs_yaml is None and options.get("fs_yml") is None:
            fs_yaml = self.YAML
        return super().download_from_bos(fs_yaml=fs_yaml, local_path=local_path, **options)
