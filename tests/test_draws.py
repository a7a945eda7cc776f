"""Random numbers as docs/recording.md defines them: test vectors, laws, and streams that share nothing.

Tests of laws have fixed keys. Each fails by chance for less than one in a million keys.
"""

import itertools
import math
import re
import struct
from collections import Counter
from hashlib import shake_128
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

import nilregret as nr
from nilregret._utils.randomness import (
    Draws,
    Randomness,
    RandomnessOfEach,
    drawn_places,
    gammas,
    normals_of,
    sobol_points,
)
from nilregret.kernels.factorization import normals

SRC = Path(nr.__file__).parent
RARE = 1e-6
APART = 5.0  # Correlations of n independent pairs are below 5 / sqrt(n) but for one in a million keys.
SEEDS = (0, 7, 2**32 - 1, 2**32, 2**32 + 7, 2**62)


def words_of(text, count):
    return struct.unpack(f"<{count}Q", shake_128(text.encode()).digest(8 * count))


def test_numbers_follow_the_definition():
    """The page's definition without NumPy, whose normal quantile is that of the standard library."""
    for key in [(7, 3), (0, 0), (2**62, 10**9)]:
        text = " ".join(map(str, ("trial", *key)))
        stream = Draws(text)
        assert stream.bits(5).tolist() == list(words_of(f"{text} 0", 5))
        assert stream.random() == (words_of(f"{text} 1", 1)[0] >> 11) / 2**53
        assert stream.random((2, 2)).ravel().tolist() == [(w >> 11) / 2**53 for w in words_of(f"{text} 2", 4)]
        wanted = [NormalDist().inv_cdf(((w >> 12) + 0.5) / 2**52) for w in words_of(f"{text} 3", 4)]
        np.testing.assert_allclose(stream.standard_normal((4, 1))[:, 0], wanted, rtol=1e-14)
        assert stream.integers(10, size=9).tolist() == [(w >> 11) * 10 >> 53 for w in words_of(f"{text} 4", 9)]
        words = words_of(f"{text} 5", 8)
        assert stream.permutation(8).tolist() == sorted(range(8), key=lambda i: words[i])
        assert stream.numpy().random() == np.random.Generator(np.random.PCG64(words_of(f"{text} 6", 4))).random()


def test_vectors():
    """What is written on the page, and holds for good."""
    assert [f"{w:016x}" for w in Draws("trial 7 3").bits(2).tolist()] == ["c42092de2e2ccd74", "2869102a8451019e"]
    assert Draws("trial 7 3").random() == 0.766122035258536
    assert Draws("trial 7 3").standard_normal() == pytest.approx(0.7261351387952932, rel=1e-14)
    assert Draws("trial 7 3").integers(10) == 7
    assert Draws("trial 7 3").random(np.int64(2)).shape == (2,)
    with pytest.raises(ValueError, match="`high` is 0"):
        Draws("trial 7 3").integers(0)
    assert Draws("trial 7 3").permutation(5).tolist() == [4, 1, 0, 3, 2]
    assert sobol_points(2, 2, Draws("design 7")).tolist() == [
        [0.6588519899345983, 0.34975873503429966],
        [0.20195268030454638, 0.5986480797738614],
    ]
    page = (Path(__file__).parents[1] / "docs" / "recording.md").read_text()
    for text in ("c42092de2e2ccd74", "2869102a8451019e", "0.766122035258536", "0.7261351387952932", "4, 1, 0, 3, 2"):
        assert text in page


def test_ends_of_the_normal_numbers():
    """No word gives an infinite number, and the smallest and largest are opposite."""
    low, high = normals_of(np.array([0, 2**64 - 1], dtype=np.uint64))
    assert -8.3 < low < -8.1
    assert high == -low


def test_streams_share_no_word():
    """NumPy's `SeedSequence` gives (2^32 + 7, 3) and (7, 1 + 3 * 2^32) one stream, and (7, 0) and 7."""
    keys = [(purpose, seed, n) for purpose in ("trial", "uniform", "numpy") for seed in SEEDS for n in range(40)]
    keys += [("trial", 7, 1 + 3 * 2**32), ("trial", 7), ("trial", 73), ("design", 7), ("design", 7, 0)]
    seen = Counter(
        word
        for key in keys
        for stream in [Draws(" ".join(map(str, key)))]
        for _ in range(3)
        for word in stream.bits(8).tolist()
    )
    assert max(seen.values()) == 1


@pytest.mark.parametrize("before", [(), (1,), (0, 1, 2)])
def test_numbers_of_several_studies_are_those_of_each_alone(before):
    """Whether some had their numbers made before the normal numbers of all, such as for their widths, or not."""
    seeds = [7, 0, 2**64 + 3]
    each = RandomnessOfEach(seeds)
    for number in (0, 3, 12):
        each.begin(number)
        alone = [Randomness(seed, number) for seed in seeds]
        for study in before:
            assert each.of(study).uniform == alone[study].uniform
        for count in (5, 1, 40):  # The last ones take two blocks of the hash.
            wanted = [one.draws.standard_normal(count) for one in alone]
            np.testing.assert_array_equal(each.normals(count), wanted, strict=True)
        for study in (2, 1, 2):  # ties come after draws
            assert each.of(study).draws.integers(99) == alone[study].draws.integers(99)
            assert each.of(study).generator.random() == alone[study].generator.random()


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_and_normal_numbers_of_trials(seed):
    """First numbers of 4,000 trials, and 4,000 numbers of one, by Kolmogorov and Smirnov."""
    first = [Randomness(seed, n) for n in range(4000)]
    for drawn in (
        [each.draws.random() for each in first],
        Draws(f"trial {seed} 0").random(4000),
        [each.uniform for each in first],
    ):
        assert stats.kstest(drawn, "uniform").pvalue > RARE
    for drawn in (
        [Draws(f"trial {seed} {n}").standard_normal() for n in range(4000)],
        Draws(f"trial {seed} 1").standard_normal((40, 100)).ravel(),
    ):
        assert stats.kstest(drawn, "norm").pvalue > RARE


def test_moments_of_normal_numbers():
    drawn = Draws("trial 0 0").standard_normal(200_000)
    for power, (mean, variance) in enumerate([(0, 1), (1, 2), (0, 15), (3, 96)], start=1):
        assert abs(np.mean(drawn**power) - mean) < APART * math.sqrt(variance / len(drawn))


def test_numbers_of_streams_are_independent():
    """Trials in turn, seeds in turn, seeds 2^32 apart, calls, purposes, and the generator for parts of one's own."""
    n = 4000
    trials = np.array([Draws(f"trial 5 {t}").standard_normal(2) for t in range(n + 1)])
    rows = {
        "trials": (trials[:-1, 0], trials[1:, 0]),
        "one trial": (trials[:, 0], trials[:, 1]),
        "seeds": (trials[:, 0], [Draws(f"trial 6 {t}").standard_normal() for t in range(n + 1)]),
        "large seeds": (trials[:, 0], [Draws(f"trial {5 + 2**32} {t}").standard_normal() for t in range(n + 1)]),
        "seed and trial": (trials[1:, 0], [Draws(f"trial {t} 5").standard_normal() for t in range(1, n + 1)]),
        "purposes": (trials[:, 0], [Draws(f"design 5 {t}").standard_normal() for t in range(n + 1)]),
        "uniform": (trials[:, 0], [Randomness(5, t).uniform for t in range(n + 1)]),
        "generator": (trials[:, 0], [Randomness(5, t).generator.standard_normal() for t in range(n + 1)]),
    }
    stream = Draws("trial 5 0")
    calls = np.array([stream.standard_normal() for _ in range(n)])
    rows["calls"] = (calls[:-1], calls[1:])
    for name, (one, other) in rows.items():
        assert abs(np.corrcoef(one, other)[0, 1]) < APART / math.sqrt(n - 1), name
        assert abs(np.corrcoef(np.square(one), np.square(other))[0, 1]) < APART / math.sqrt(n - 1), name


def test_whole_numbers_and_permutations_are_uniform():
    counts = np.bincount(Draws("trial 1 1").integers(7, size=70_000), minlength=7)
    assert stats.chisquare(counts).pvalue > RARE
    assert Draws("trial 1 1").integers(1, size=50).max() == 0
    assert max(int(u * n) for n in (3, 2**31 - 1, 2**52 + 1) for u in [1.0 - 2.0**-53]) == 2**52
    stream = Draws("trial 1 2")
    seen = Counter(tuple(stream.permutation(4).tolist()) for _ in range(12_000))
    assert set(seen) == set(itertools.permutations(range(4)))
    assert stats.chisquare(list(seen.values())).pvalue > RARE
    drawn = drawn_places(np.array([0.2, 0.0, 0.5, 0.3]), Draws("trial 1 3"), 40_000)
    counts = np.bincount(drawn, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], 40_000 * np.array([0.2, 0.5, 0.3])).pvalue > RARE


@pytest.mark.parametrize("rng", [Draws("trial 3 0"), np.random.default_rng(3)], ids=["ours", "numpy"])
def test_gamma_numbers(rng):
    shapes = np.array([0.3, 1.0, 5.5])
    drawn = gammas(rng, shapes, (4000, 3))
    for shape, column in zip(shapes, drawn.T, strict=True):
        assert stats.kstest(column, "gamma", (shape,)).pvalue > RARE


@pytest.mark.parametrize("dimension", [1, 2, 5, 40])
def test_sobol_points_are_a_scrambled_net(dimension):
    """Each of 64 equal intervals of a column has one of the first 64 points, each 8 x 8 cell of two columns one."""
    points = sobol_points(dimension, 64, Draws(f"design {dimension}"))
    assert points.shape == (64, dimension)
    for column in points.T:
        assert np.unique((column * 64).astype(int)).size == 64
    cells = (points[:, :2] * 8).astype(int)
    assert dimension == 1 or len(np.unique(cells, axis=0)) == 64
    np.testing.assert_array_equal(sobol_points(dimension, 40, Draws(f"design {dimension}")), points[:40])


def test_each_sobol_point_is_uniform():
    """Over scrambles each point alone is uniform, and the error of an average falls far below that of random points."""
    nets = np.array([sobol_points(3, 64, Draws(f"design {seed}")) for seed in range(2000)])
    for i, j in [(0, 0), (1, 1), (63, 2)]:
        assert stats.kstest(nets[:, i, j], "uniform").pvalue > RARE
    means = np.prod(nets, axis=2).mean(axis=1)
    assert abs(means.mean() - 0.125) < APART * means.std() / math.sqrt(len(means))
    assert means.std() < 0.2 * math.sqrt((1 / 27 - 1 / 64) / 64)  # a fifth of that of independent points


def test_normal_numbers_do_not_depend_on_the_rank():
    """A rank depends on rounding. What is drawn for other features, and by later calls, must not."""
    one, other = Draws("trial 0 0"), Draws("trial 0 0")
    np.testing.assert_array_equal(normals(one, 3, 5), normals(other, 3, 6)[:, :5])
    assert one.random() == other.random()


def test_what_a_stored_study_decides_by_is_not_drawn_by_numpy():
    """NumPy does not promise the numbers of `Generator`. Its own are left to simulated worlds, papers and checks."""
    apart = ("_utils/randomness.py", "environments/", "simulation/", "papers/", "testing/")
    drawing = re.compile(r"default_rng\(|SeedSequence|np\.random\.(?!Generator)|qmc\.Sobol\(.*scramble=True")
    found = [
        f"{path.relative_to(SRC)}: {line.strip()}"
        for path in sorted(SRC.rglob("*.py"))
        if not str(path.relative_to(SRC)).startswith(apart)
        for line in path.read_text().splitlines()
        if drawing.search(line) and ">>>" not in line and "..." not in line
    ]
    assert not found
