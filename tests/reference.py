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
