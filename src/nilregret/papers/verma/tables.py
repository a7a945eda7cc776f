"""Expensive objectives, evaluated once: validation accuracies on grids of hyperparameters.

| table | what is trained | coordinates, each scaled to [0, 1] |
|---|---|---|
| `svm` | RBF support vector machine on Pima diabetes | C in [1e-4, 100], gamma in [1e-4, 10], both linear |
| `lr` | logistic regression on breast cancer | batch size in [32, 128]; rate, decay in [1e-6, 1], logarithmic |
| `cnn` | one convolutional layer on MNIST, Adam | batch size in [128, 512]; rate, decay in [1e-6, 1], logarithmic |
| `growing` | `svm` on the first 1/20, 2/20, ... of the training rows | as `svm`; one row for each size |

Ranges are the paper's (appendix C.2). Its released code spreads C and gamma linearly. For the others the code gives no
spread, and on a linear grid every learning rate but the first is too large. "Decay" makes the rate of step t
rate / (1 + decay t). The tables are made by `nilregret papers --tabulate NAME` and are part of this package. A file of
the same name in the folder `verma_tables` of the data sets takes precedence.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, final

import numpy as np

from ..._utils.checks import Array, IndexArray
from ..._utils.dataclass import dataclass
from ...domains.domain import Arms
from ...environments.data.datasets import VARIABLE, arrays, find
from ...errors import InvalidInput, MissingData, MissingExtra

Report = Callable[[int, int], None]
FOLDER = "verma_tables"
SIZES = 20  # sizes of the growing data set
SHARE = 0.3  # fraction of the rows for validation


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Validation accuracies on a grid.

    Attributes:
        arms: the grid in the unit cube, `(N, d)`.
        accuracy: accuracies in [0, 1], `(N,)`, or `(20, N)` with several sizes of the data.
    """

    arms: Arms
    accuracy: Array


def table(name: str, data: Path | None) -> Table:
    """Returns the table of that name in the data folder, or else the table of this package."""
    try:
        file = find(FOLDER, [f"{name}.npz"], data, origin="")
    except MissingData:
        file = Path(str(resources.files(__package__) / "tabulated" / f"{name}.npz"))
    axes_of, correct, cases = arrays(file, ["axes", "correct", "cases"])
    axes = [axes_of[i][np.isfinite(axes_of[i])] for i in range(len(axes_of))]
    return Table(Arms(_grid(axes)), np.asarray(correct, dtype=np.float64) / int(cases))


def tabulate(name: str, folder: Path, *, data: Path | None = None, report: Report) -> Path:
    """Evaluates an objective on its whole grid and writes the table, `NAME.npz`, into a folder."""
    if name not in MAKERS:
        raise InvalidInput(f"There is no table {name!r}: there are {', '.join(MAKERS)}.")
    axes, correct, cases = MAKERS[name](data, report)
    file = folder / f"{name}.npz"
    width = max(map(len, axes))
    padded = np.array([np.pad(axis, (0, width - len(axis)), constant_values=np.nan) for axis in axes])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, axes=padded, correct=correct.astype(np.uint16), cases=np.int64(cases))
    except OSError as error:
        raise InvalidInput(
            f"The table could not be written to {folder}: {error}. Choose another with --out."
        ) from error
    return file


Made = tuple[list[Array], IndexArray, int]  # axes, numbers of correct predictions on the grid, number of predictions


def _unit(count: int) -> Array:
    return np.linspace(0.0, 1.0, count)


def _grid(axes: Sequence[Array]) -> Array:
    """Returns the points of a grid, `(N, d)`, the last axis varying fastest."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def _log(u: float, low: float, high: float) -> float:
    return float(low * (high / low) ** u)


def split(y: Array, share: float, seed: int) -> tuple[IndexArray, IndexArray]:
    """Returns rows to learn from and rows to validate on, stratified by class, in random order."""
    rng = np.random.default_rng(seed)
    learn, validate = [], []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        cut = round(share * len(rows))
        validate.append(rows[:cut])
        learn.append(rows[cut:])
    return rng.permutation(np.concatenate(learn)), rng.permutation(np.concatenate(validate))


# -- support vector machines -------------------------------------------------------------------------------------------


def _svm(data: Path | None, report: Report, *, grid: int = 41) -> Made:
    correct, cases = _svm_counts(data, report, grid, [1.0])
    return [_unit(grid)] * 2, correct[0], cases


def _growing(data: Path | None, report: Report, *, grid: int = 21) -> Made:
    correct, cases = _svm_counts(data, report, grid, [(i + 1) / SIZES for i in range(SIZES)])
    return [_unit(grid)] * 2, correct, cases


def _svm_counts(data: Path | None, report: Report, grid: int, shares: Sequence[float]) -> tuple[IndexArray, int]:
    SVC = _needed("sklearn.svm", "examples").SVC
    halves = _needed("sklearn.model_selection", "examples").train_test_split
    origin = "It is the Pima Indians diabetes data of Kaggle (uciml), a header and 768 rows of 9 numbers."
    rows = np.loadtxt(find("pima_diabetes", ["diabetes.csv"], data, origin=origin), delimiter=",", skiprows=1)
    X, y = rows[:, :8], rows[:, 8]
    learn, validate = halves(np.arange(len(y)), test_size=SHARE, stratify=y, random_state=0)  # as in the released code
    correct = np.zeros((len(shares), grid * grid), dtype=np.intp)
    for i, share in enumerate(shares):
        some = learn[: max(round(share * len(learn)), 2)]
        for j, (u, v) in enumerate(_grid([_unit(grid)] * 2)):
            model = SVC(C=1e-4 + u * (100.0 - 1e-4), gamma=1e-4 + v * (10.0 - 1e-4))
            both = len(np.unique(y[some])) > 1  # A few rows may all be of one class.
            predicted = model.fit(X[some], y[some]).predict(X[validate]) if both else y[some[0]]
            correct[i, j] = int((predicted == y[validate]).sum())
            report(i * grid * grid + j + 1, correct.size)
    return correct, len(validate)


# -- logistic regression -----------------------------------------------------------------------------------------------


def _lr(data: Path | None, report: Report, *, sizes: int = 7, rates: int = 13) -> Made:
    """Trains in ten passes from zero weights, with features standardised on the training rows."""
    origin = "It is the Breast Cancer Wisconsin (Diagnostic) data of UCI: 30 features, then 1 for benign."
    file = find("breast_cancer", ["wdbc.csv.gz", "wdbc.csv"], data, origin=origin)
    rows = np.genfromtxt(file, delimiter=",", skip_header=1)
    X, y = rows[:, :30], rows[:, 30]
    learn, validate = split(y, SHARE, seed=0)
    X = (X - X[learn].mean(axis=0)) / X[learn].std(axis=0)
    axes = [_unit(sizes), _unit(rates), _unit(rates)]
    correct = []
    for b, r, d in _grid(axes):
        weights = _trained(X[learn], y[learn], round(32 + 96 * b), _log(r, 1e-6, 1.0), _log(d, 1e-6, 1.0))
        scores = X[validate] @ weights[:-1] + weights[-1]
        correct.append(int(((scores > 0.0) == y[validate]).sum()))
        report(len(correct), sizes * rates * rates)
    return axes, np.array(correct), len(validate)


def _trained(X: Array, y: Array, batch: int, rate: float, decay: float, *, passes: int = 10) -> Array:
    from scipy.special import expit

    rng, weights, step = np.random.default_rng(0), np.zeros(X.shape[1] + 1), 0
    ones = np.column_stack([X, np.ones(len(X))])
    for _ in range(passes):
        order = rng.permutation(len(X))
        for start in range(0, len(X), batch):
            some = order[start : start + batch]
            error = expit(ones[some] @ weights) - y[some]
            weights -= rate / (1.0 + decay * step) * (error @ ones[some]) / len(some)
            step += 1
    return weights


# -- convolutional network ---------------------------------------------------------------------------------------------


def _cnn(data: Path | None, report: Report, *, sizes: int = 6, rates: int = 8) -> Made:
    """Trains in two passes over 8,000 of MNIST's 10,000 test images, and validates on the other 2,000.

    The 60,000 training images are not used, because there is no small file with them.
    """
    torch = _needed("torch", "bench")
    origin = "It is MNIST's t10k-images-idx3-ubyte.gz, with t10k-labels-idx1-ubyte.gz beside it."
    file = find("mnist_t10k", ["t10k-images-idx3-ubyte.gz"], data, origin=origin)
    labels = file.with_name("t10k-labels-idx1-ubyte.gz")
    images = np.frombuffer(gzip.decompress(file.read_bytes()), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    X = torch.tensor(images.astype(np.float32) / 255.0)
    y = torch.tensor(np.frombuffer(gzip.decompress(labels.read_bytes()), np.uint8, offset=8).astype(np.int64))
    learn, validate = (torch.tensor(rows) for rows in split(y.numpy().astype(np.float64), 0.2, seed=0))
    axes = [_unit(sizes), _unit(rates), _unit(rates)]
    correct = []
    for b, r, d in _grid(axes):
        model = _network(torch, X[learn], y[learn], round(128 + 384 * b), _log(r, 1e-6, 1.0), _log(d, 1e-6, 1.0))
        with torch.no_grad():
            correct.append(int((model(X[validate]).argmax(dim=1) == y[validate]).sum()))
        report(len(correct), sizes * rates * rates)
    return axes, np.array(correct), len(validate)


def _network(torch: Any, X: Any, y: Any, batch: int, rate: float, decay: float) -> Any:
    """Trains 8 channels with kernels of size 3, pooling of size 3, a layer of 8 nodes, ReLU, Adam (appendix C.2)."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(3), nn.Flatten(),
        nn.Linear(8 * 8 * 8, 8), nn.ReLU(), nn.Linear(8, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step, start in enumerate([*range(0, len(X), batch)] * 2):
        for group in optimizer.param_groups:
            group["lr"] = rate / (1.0 + decay * step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(X[start : start + batch]), y[start : start + batch]).backward()
        optimizer.step()
    return model


def _needed(module: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"Making this table needs {module.split('.')[0]}: pip install 'nilregret[{extra}]'. The table itself comes "
            "with the library; the figures need nothing."
        ) from error


MAKERS: dict[str, Callable[[Path | None, Report], Made]] = {"svm": _svm, "lr": _lr, "cnn": _cnn, "growing": _growing}
__all__ = ["FOLDER", "MAKERS", "SIZES", "VARIABLE", "Table", "split", "table", "tabulate"]
