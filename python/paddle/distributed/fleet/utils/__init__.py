from paddle import _refuse

__getattr__ = _refuse.getter(__name__, {
    "recompute": "DistributedStrategy().recompute", "LocalFS": "the module os", "HDFSClient": "fleetx.utils.Downloader",
    "fs": "fleetx.utils.Downloader", "ps_util": "nothing: parameter-server training is not built yet",
    "DistributedInfer": "paddle.static.load_inference_model"})
