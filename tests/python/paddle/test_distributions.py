"""Distributions of fluid.layers, against their formulas, and draws."""
import math

import numpy as np
import pytest

import paddle
from paddle import fluid, static

L = fluid.layers


def test_normal(run):
    loc, scale = static.data("loc", [None, 2], "float32"), static.data("scale", [None, 2], "float32")
    one, other = L.Normal(loc, scale), L.Normal([0.0, 1.0], [2.0, 1.0])
    values = static.data("v", [None, 2], "float32")
    means, deviations = np.array([[0.5, -1.0]], "float32"), np.array([[1.5, 0.5]], "float32")
    feed = {"loc": means, "scale": deviations, "v": np.array([[0.0, 0.0]], "float32")}
    entropy, density, apart, draws = run(feed, [one.entropy(), one.log_prob(values), one.kl_divergence(other), one.sample([20000])])
    np.testing.assert_allclose(entropy, np.log(deviations) + 0.5 * math.log(2 * math.pi * math.e), rtol=1e-5)
    want = -0.5 * (means / deviations) ** 2 - np.log(deviations * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(density, want, rtol=1e-5)
    there, at = np.array([2.0, 1.0]), np.array([0.0, 1.0])
    want = np.log(there / deviations) + (deviations ** 2 + (means - at) ** 2) / (2 * there ** 2) - 0.5
    np.testing.assert_allclose(apart, want, rtol=1e-5)
    assert draws.shape == (20000, 1, 2)
    np.testing.assert_allclose(draws.mean(0), means, atol=0.05)
    np.testing.assert_allclose(draws.std(0), deviations, rtol=0.05)


def test_uniform(run):
    flat = L.Uniform(1.0, [2.0, 5.0])
    draws, entropy, density = run({}, [flat.sample([5000]), flat.entropy(), flat.log_prob(L.assign(np.array([1.5, 6.0], "float32")))])
    assert draws.shape == (5000, 2) and draws.min() >= 1.0 and draws[:, 0].max() < 2.0 and draws[:, 1].max() < 5.0
    np.testing.assert_allclose(entropy, [0.0, math.log(4.0)], rtol=1e-6)
    assert density[0] == 0.0 and density[1] == -np.inf


def test_categorical_and_its_gradient(run):
    weights = np.array([[1.0, 2.0, 1.0]], "float32")
    logits = static.data("x", [None, 3], "float32")
    one, other = L.Categorical(logits), L.Categorical(np.zeros((1, 3), "float32"))
    entropy, apart = one.entropy(), one.kl_divergence(other)
    gradient, = fluid.gradients(apart, logits)
    entropy, apart, gradient = run({"x": np.log(weights)}, [entropy, apart, gradient])
    p = weights / weights.sum()
    np.testing.assert_allclose(entropy, -(p * np.log(p)).sum(-1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(apart, (p * np.log(3 * p)).sum(-1, keepdims=True), rtol=1e-4)
    want = p * (np.log(3 * p) - apart)
    np.testing.assert_allclose(gradient, want, rtol=1e-4, atol=1e-6)


def test_multivariate_normal(run):
    one = L.MultivariateNormalDiag([0.0, 1.0], np.diag([2.0, 3.0]))
    other = L.MultivariateNormalDiag([1.0, 1.0], np.diag([1.0, 6.0]))
    entropy, apart = run({}, [one.entropy(), one.kl_divergence(other)])
    assert entropy.item() == pytest.approx(0.5 * (2 * math.log(2 * math.pi * math.e) + math.log(6.0)), rel=1e-5)
    assert apart.item() == pytest.approx(0.5 * (2.0 + 0.5 + 1.0 - 2 + math.log(6.0 / 6.0)), rel=1e-5)
    assert paddle.fluid.layers.distributions.Normal is L.Normal
