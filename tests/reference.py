"""A plain dense posterior in extended precision: what every engine must agree with."""

import numpy as np


def cholesky(matrix):
    """Lower factor in whatever precision the matrix has (LAPACK knows only double)."""
    factor = np.zeros_like(matrix)
    for j in range(len(matrix)):
        column = matrix[j:, j] - factor[j:, :j] @ factor[j, :j]
        factor[j:, j] = column / np.sqrt(column[0])
    return factor


def solve_lower(factor, right):
    solution = np.zeros((len(factor), right.shape[1]), dtype=factor.dtype)
    for j in range(len(factor)):
        solution[j] = (right[j] - factor[j, :j] @ solution[:j]) / factor[j, j]
    return solution


class Dense:
    """Mean, covariance, log determinant and quadratic form of t observations, repeats and all."""

    def __init__(self, kernel_matrix, arms, targets, regularization):
        K = kernel_matrix.astype(np.longdouble)
        arms, y = np.asarray(arms, dtype=int), np.asarray(targets, dtype=np.longdouble)
        ridge = np.longdouble(regularization)
        factor = cholesky(K[np.ix_(arms, arms)] + ridge * np.eye(len(arms), dtype=np.longdouble))
        half = solve_lower(factor, np.column_stack([y, K[arms]]))
        self.mean = (half[:, 1:].T @ half[:, 0]).astype(float)
        self.covariance = (K - half[:, 1:].T @ half[:, 1:]).astype(float)
        self.log_determinant = float(2 * np.log(factor.diagonal()).sum())
        self.quadratic_form = float(half[:, 0] @ half[:, 0])
        self.information_gain = 0.5 * (self.log_determinant - len(arms) * float(np.log(ridge)))


def rkhs_norm_of_mean(kernel, points, targets, regularization):
    """||mu||_k = sqrt(alpha^T K alpha), alpha = (K + lambda I)^{-1} y."""
    K = kernel(points, points)
    alpha = np.linalg.solve(K + regularization * np.eye(len(points)), targets)
    return float(np.sqrt(alpha @ K @ alpha))


NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


def mapped(back, knots, mean, std):
    """Mean and std of back(W), W normal, each `(n,)`, by Gauss-Legendre between the knots and every half deviation."""
    moments = []
    for m, s in zip(mean, np.maximum(std, 1e-300), strict=True):
        with np.errstate(over="ignore", under="ignore"):
            cuts = np.union1d(np.arange(-38.0, 38.5, 0.5), np.clip((knots - m) / s, -38.0, 38.0))
            z = 0.5 * (cuts[1:] + cuts[:-1])[:, None] + 0.5 * np.diff(cuts)[:, None] * NODES
            mass = 0.5 * np.diff(cuts)[:, None] * WEIGHTS * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
            middle = float(back(np.array(m)))
            off = back(m + s * z) - middle
            shift = float((off * mass).sum())
            moments.append((middle + shift, np.sqrt(float(((off - shift) ** 2 * mass).sum()))))
    return tuple(np.array(moments).reshape(-1, 2).T)
