import sys

import pytest

import fleetx as X


def test_defaults(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    assert vars(X.parse_train_configs()) == {"lr": 1e-4, "momentum": 0.9, "beta1": 0.9, "beta2": 0.997,
                                             "batch_size": 32, "epsilon": 1e-9, "download_config": None}


def test_flags(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--lr", "0.5", "--batch_size=8", "--download_config", "a.yaml"])
    configs = X.parse_train_configs()
    assert (configs.lr, configs.batch_size, configs.download_config) == (0.5, 8, "a.yaml")


def test_unknown_flag(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train.py", "--rate", "1"])
    with pytest.raises(SystemExit):
        X.parse_train_configs()
    assert "--rate" in capsys.readouterr().err
