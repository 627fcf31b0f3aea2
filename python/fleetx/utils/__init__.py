from fleetx.utils.download import Downloader, ImageNetDownloader
from fleetx.utils.lr_strategy import linear_warmup_decay
from fleetx.utils.plot import plot_curves

__all__ = ["Downloader", "ImageNetDownloader", "linear_warmup_decay", "plot_curves"]
