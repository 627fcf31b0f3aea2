from fleetx.utils.download import Downloader, ImageNetDownloader
from fleetx.utils.lr_strategy import linear_warmup_decay

__all__ = ["Downloader", "ImageNetDownloader", "linear_warmup_decay"]
