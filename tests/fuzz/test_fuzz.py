"""A few random scenarios and certificates; ``make fuzz MINUTES=30`` runs many, in processes of their own."""

import pytest
from fuzz.scenarios import certificate_outcome, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

few = settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
seeds = st.integers(0, 2**32 - 1)


@few
@given(seeds)
def test_scenarios_end_in_numbers_or_in_named_errors(seed):
    found = outcome(seed)
    assert found.good, found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@few
@given(seeds)
def test_certificates_are_true(dtype, seed):
    found = certificate_outcome(seed, dtype)
    assert found.good, found
