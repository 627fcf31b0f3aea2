"""Which calls of PaddlePaddle are served, as a version."""
import paddle

full_version = paddle.__version__
major, minor, patch = full_version.partition("+")[0].split(".")
rc, istaged, commit = "0", True, "fleetx"
with_mkl = "OFF"


def show():
    print(f"full_version: {full_version}\nmajor: {major}\nminor: {minor}\npatch: {patch}\nrc: {rc}\ncommit: {commit}")


def mkl():
    return with_mkl


def cuda():
    """The text that the original has where there is no CUDA."""
    return "False"


cudnn = cuda
