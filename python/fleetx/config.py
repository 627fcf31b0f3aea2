"""What the scripts of the documents take from their command lines."""
import argparse

FLAGS = [
    ("lr", float, 1e-4, "learning rate"),
    ("momentum", float, 0.9, "of the optimizer Momentum"),
    ("beta1", float, 0.9, "of the optimizer Adam"),
    ("beta2", float, 0.997, "of the optimizer Adam"),
    ("batch_size", int, 32, "samples per step and worker"),
    ("epsilon", float, 1e-9, "of the optimizer Adam"),
    ("download_config", str, None, "yaml that says where the data are"),
]


def parse_train_configs() -> argparse.Namespace:
    """The flags of this process's command line: lr, momentum, beta1, beta2, batch_size, epsilon, download_config."""
    parser = argparse.ArgumentParser(description="settings of the training")
    for name, kind, default, meaning in FLAGS:
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"{meaning} (default: {default})")
    return parser.parse_args()
