"""Write lte-fading.trace: a synthetic cellular downlink in the Mahimahi format.

The rate follows a first-order autoregressive process in steps of 100 ms around 9 Mbit/s, between 1 and 20 Mbit/s,
with one gap of 400 ms (a cell change). Integer arithmetic and an own generator make the file the same everywhere.

    python3 scenarios/traces/make_lte_fading.py > scenarios/traces/lte-fading.trace
"""

from collections.abc import Iterator

STEP_MS = 100
STEPS = 200
MEAN_KBPS, MIN_KBPS, MAX_KBPS = 9_000, 1_000, 20_000
OPPORTUNITY_BITS = 1504 * 8
GAP_STEPS = range(120, 124)


def noise(seed: int) -> Iterator[int]:
    """Yield sums of four uniform integers: nearly normal, mean 0, standard deviation about 1,200."""
    state = seed
    while True:
        total = 0
        for _ in range(4):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            total += (state >> 33) % 2_001 - 1_000
        yield total


def rates_kbps() -> Iterator[int]:
    """Yield the rate of each step."""
    rate = MEAN_KBPS
    for step, change in zip(range(STEPS), noise(seed=20), strict=False):
        rate += (MEAN_KBPS - rate) // 12 + change
        rate = max(MIN_KBPS, min(MAX_KBPS, rate))
        yield 0 if step in GAP_STEPS else rate


def main() -> None:
    """Print one line per delivery opportunity, and a last one at the end of the period."""
    credit_bits = 0
    for step, rate in enumerate(rates_kbps()):
        for ms in range(step * STEP_MS, (step + 1) * STEP_MS):
            credit_bits += rate
            while credit_bits >= OPPORTUNITY_BITS:
                credit_bits -= OPPORTUNITY_BITS
                print(ms)
    print(STEPS * STEP_MS)


if __name__ == "__main__":
    main()
