import pytest

from fleetx.utils import linear_warmup_decay


def test_up_and_down():
    schedule = linear_warmup_decay(0.1, 4, 10)
    rates = []
    for _ in range(12):
        rates.append(schedule())
        schedule.step()
    assert rates[:4] == pytest.approx([0, 0.025, 0.05, 0.075])
    assert rates[4:] == pytest.approx([0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0, 0])


def test_too_long_a_warm_up():
    with pytest.raises(ValueError, match="warmup_steps is 10"):
        linear_warmup_decay(0.1, 10, 10)
