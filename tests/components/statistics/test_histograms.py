"""Histograms of equal widths, against TFDV's own."""

from __future__ import annotations

import numpy as np
import pytest
from tensorflow_data_validation.utils import quantiles_util

from components.statistics import histograms

DRAW = np.random.default_rng(5)
VALUES = {
    "normal": DRAW.normal(size=5_000),
    "float32": DRAW.lognormal(size=3_000).astype(np.float32),
    "whole numbers": DRAW.integers(0, 7, 2_000).astype(np.float32),
    "half of them zero": np.where(DRAW.random(2_000) < 0.5, 0.0, DRAW.normal(size=2_000)),
    "two": np.array([1.0, 2.0]),
    "one": np.array([3.0] * 5),
    "infinite": np.array([-np.inf, *DRAW.normal(size=500), np.inf, np.inf]),
    "too wide": np.array([-1.7e308, 0.0, 1.7e308]),
}


@pytest.mark.parametrize("name", VALUES)
def test_they_equal_tfdvs_to_the_last_bit(name: str) -> None:
    values = np.sort(VALUES[name])
    quantiles = np.quantile(values, np.linspace(0, 1, 101), method="inverted_cdf").astype(values.dtype)
    counts = np.linspace(1, len(values), 101)
    finite = values[np.isfinite(values)]
    arguments = (quantiles, counts, float(finite[0]), float(finite[-1]), 10, float((values == np.inf).sum()))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = histograms._tfdv_histogram(*arguments)
        found = histograms.equal_widths(*arguments)
    assert found == expected
    assert len(found.buckets) == {"one": 1, "infinite": 12, "too wide": 0}.get(name, 10)


def test_tfdv_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantiles_util, "generate_equi_width_histogram", histograms._tfdv_histogram)
    histograms.use_them()
    assert quantiles_util.generate_equi_width_histogram is histograms.equal_widths
