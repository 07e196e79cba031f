"""Targets that mean ill (lab/hostile.py, which makes thousands of them by `make hostile`): a few of each kind below the whole
program with AddressSanitizer and UBSan, in each of its modes."""
import pytest

from lab import hostile, tiers

EACH = 2


@pytest.mark.measures
@pytest.mark.root
def test_nothing_that_a_target_does_breaks_the_profiler(out):
    reason = tiers.tool_missing("gcc", "objcopy", "xz")
    if reason:
        pytest.skip(reason)
    sanitized = out / "host" / "pillion"
    assert sanitized.exists(), f"{sanitized} is missing; run make unit"
    runs = {f"sanitized {' '.join(mode)}": (sanitized, mode, hostile.SANITIZED_MEMORY_MB) for mode in hostile.MODES}
    kinds = list(hostile.KINDS)
    found, _ = hostile.beside(hostile.Stock(False), range(EACH * len(kinds)), kinds, runs)
    assert not found, "\n".join(found)
