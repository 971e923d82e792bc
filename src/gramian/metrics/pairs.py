"""How well pairs are ranked: concordance, concordance of interactions, and scores for each setting.

The concordance index is the fraction of comparable examples that are in the right order, weighted,

    C = Σ w_a w_b h(s_b − s_a) / Σ w_a w_b,     sums over all a, b with y_a < y_b,

where h(d) = 1 for d > 0, 1/2 for d = 0 and 0 otherwise. For two classes it is the area under the ROC curve. The
examples are visited in the order of y; a Fenwick tree over the ranks of the scores adds up the weights seen so far
below a score: O(n log n).

The interaction concordance index asks for what neither object explains alone. For cells (i, j), (k, l), (i, l) and
(k, j) that are all observed it compares the signs of

    y_ij + y_kl − y_il − y_kj     and     s_ij + s_kl − s_il − s_kj.

With d_j = y_ij − y_kj and e_j = s_ij − s_kj these are d_j − d_l and e_j − e_l: for each two rows i < k it is the
concordance of (d, e) over the columns that both have observed. Terms of a row or of a column cancel, so a score
f(i) + g(j) earns 1/2. Differences that agree up to rounding, 8 ε max |y|, are taken as equal; otherwise such a score
would be judged by its rounding errors. With m rows and q columns this takes O(m² q log q), where the side with fewer
objects is that of the rows.

References
----------
Harrell, Califf, Pryor, Lee and Rosati (1982). Evaluating the yield of medical tests. JAMA: the concordance index.
Pahikkala, Numminen, Movahedi, Karmitsa and Airola (2025). Interaction concordance index. arXiv:2510.14419.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numba import njit
from sklearn.metrics import average_precision_score, roc_auc_score

from gramian._core.arrays import to_numpy
from gramian._core.threads import in_parts
from gramian.metrics._checks import check_labels, check_values, check_weights
from gramian.pairs import Pairs
from gramian.selection.pair_folds import pair_setting


def concordance_index(y_true: Any, y_score: Any, sample_weight: Any = None) -> float:
    """Fraction of comparable examples that are in the right order; 1 is best, 1/2 is chance.

    Two examples are comparable if their targets differ. Equal scores count half.

    Parameters
    ----------
    y_true : array of shape (n_samples,)
        Numbers.
    y_score : array of shape (n_samples,)
        Predictions, on any scale.
    sample_weight : array of shape (n_samples,), default=None
        Two examples count with the product of their weights.

    Returns
    -------
    float
        NaN, with a warning, if all targets are equal.

    See Also
    --------
    interaction_concordance_index : The same for what neither object of a pair explains alone.

    Examples
    --------
    >>> from gramian.metrics import concordance_index
    >>> concordance_index([1.0, 2.0, 3.0, 3.0], [0.1, 0.4, 0.3, 0.4])
    0.7
    """
    y = check_values("y_true", y_true)
    scores = check_values("y_score", y_score, len(y))
    weights = check_weights(sample_weight, len(y))
    order = np.argsort(y, kind="stable")
    distinct, rank = np.unique(scores[order], return_inverse=True)
    concordant, comparable = _concordance(y[order], rank, len(distinct), weights[order])
    if comparable == 0:
        _warn("concordance_index has nothing to compare: all targets in y_true are equal.")
        return float("nan")
    return concordant / comparable


def interaction_concordance_index(
    left_index: Any, right_index: Any, y_true: Any, y_score: Any
) -> float:
    """Fraction of interactions whose sign is predicted; 1 is best, 1/2 is chance.

    For left objects i, k and right objects j, l with four observed pairs the interaction is
    y_ij + y_kl − y_il − y_kj: by how much i prefers j to l more than k does. What is left out are interactions of zero;
    predicted interactions of zero count half.

    Parameters
    ----------
    left_index, right_index : int array of shape (n,)
        The objects of each pair. A pair may occur only once.
    y_true : array of shape (n,)
        Numbers.
    y_score : array of shape (n,)
        Predictions, on any scale.

    Returns
    -------
    float
        NaN, with a warning, if there is no interaction.

    See Also
    --------
    concordance_index : Compares single pairs, and so rewards knowing how active an object is in general.

    Examples
    --------
    >>> from gramian.metrics import interaction_concordance_index
    >>> left, right, y = [0, 0, 1, 1], [0, 1, 0, 1], [1.0, 0.0, 0.0, 1.0]
    >>> interaction_concordance_index(left, right, y, [5.0, 3.0, 2.0, 1.0])
    1.0
    >>> interaction_concordance_index(left, right, y, [5.0, 3.0, 2.0, 0.0])  # f(left) + g(right)
    0.5
    """
    y = check_values("y_true", y_true)
    scores = check_values("y_score", y_score, len(y))
    left = _checked_objects("left_index", left_index, len(y))
    right = _checked_objects("right_index", right_index, len(y))
    tolerances = tuple(
        8 * np.finfo(_precision(given)).eps * np.max(np.abs(values))
        for given, values in ((y_true, y), (y_score, scores))
    )
    rows, columns = (left, right) if left.max() <= right.max() else (right, left)
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    repeated = np.flatnonzero((np.diff(rows) == 0) & (np.diff(columns) == 0))
    if len(repeated):
        first, second = sorted(order[repeated[0] : repeated[0] + 2])
        raise ValueError(
            f"left_index and right_index must name each pair once, but entries {first} and {second} are the same pair. "
            "Average y_true and y_score over repeated pairs first."
        )
    starts = np.searchsorted(rows, np.arange(rows[-1] + 2))
    y, scores = y[order], scores[order]
    concordant = comparable = 0.0
    for row in range(rows[-1]):

        def count(first: int, last: int, row: int = row) -> tuple[float, float]:
            return _row_with_later_rows(first, last, row, starts, columns, y, scores, tolerances)

        for found in in_parts(count, rows[-1] - row):
            concordant += found[0]
            comparable += found[1]
    if comparable == 0:
        _warn(
            "interaction_concordance_index has nothing to compare: no two left and two right objects "
            "have four observed pairs with an interaction other than zero."
        )
        return float("nan")
    return float(concordant / comparable)


def scores_by_setting(
    train: Pairs, new: Pairs, y_true: Any, y_score: Any
) -> dict[str, dict[str, float]]:
    """Score predictions separately for the four ways in which a pair can be new.

    Parameters
    ----------
    train : Pairs
        What the model was trained on.
    new : Pairs
        What it predicted.
    y_true : array of shape (len(new),)
        Numbers, or labels of two classes.
    y_score : array of shape (len(new),)
        Predictions, on any scale; larger for the second class.

    Returns
    -------
    dict of str: dict
        For each setting that occurs, "A" to "D" as in `pair_setting`: the number of "pairs" and their
        "concordance". If `y_true` has exactly two values, also "auc", the area under the ROC curve, and
        "aupr", the average precision. Where a setting has one value only they are NaN, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Pairs
    >>> from gramian.metrics import scores_by_setting
    >>> pairs = Pairs.complete(np.eye(2), np.eye(4))
    >>> scores_by_setting(pairs[:2], pairs[2:4], [0, 1], [0.2, 0.7])
    {'C': {'pairs': 2, 'auc': 1.0, 'aupr': 1.0, 'concordance': 1.0}}
    """
    settings = pair_setting(train, new)
    y = check_labels("y_true", y_true, len(new))
    scores = check_values("y_score", y_score, len(new))
    values, classes = np.unique(y, return_inverse=True)
    two = len(values) == 2
    y = classes.astype(np.float64) if two else check_values("y_true", y)
    results: dict[str, dict[str, float]] = {}
    for setting in np.unique(settings).tolist():
        chosen = settings == setting
        truth, score = y[chosen], scores[chosen]
        result: dict[str, float] = {"pairs": int(chosen.sum())}
        comparable = truth.min() < truth.max()
        if not comparable:
            what = "auc, aupr and concordance are" if two else "concordance is"
            _warn(
                f"All {result['pairs']} pairs of setting {setting} have the same y_true: {what} NaN there."
            )
        measures: dict[str, Any] = {"concordance": concordance_index}
        if two:
            measures = {"auc": roc_auc_score, "aupr": average_precision_score} | measures
        for name, measure in measures.items():
            result[name] = float(measure(truth, score)) if comparable else float("nan")
        results[setting] = result
    return results


@njit(cache=True, nogil=True)
def _concordance(y, rank, n_ranks, weights):
    """Concordant and comparable weight; y ascends, equal scores have equal ranks."""
    tree = np.zeros(n_ranks + 1)
    at_rank = np.zeros(n_ranks)
    concordant = 0.0
    comparable = 0.0
    seen = 0.0
    start = 0
    while start < y.size:
        stop = start
        while stop < y.size and y[stop] == y[start]:
            stop += 1
        for a in range(start, stop):
            below = 0.0
            node = rank[a]
            while node > 0:
                below += tree[node]
                node -= node & -node
            concordant += weights[a] * (below + 0.5 * at_rank[rank[a]])
            comparable += weights[a] * seen
        for a in range(start, stop):
            at_rank[rank[a]] += weights[a]
            seen += weights[a]
            node = rank[a] + 1
            while node <= n_ranks:
                tree[node] += weights[a]
                node += node & -node
        start = stop
    return concordant, comparable


@njit(cache=True, nogil=True)
def _order(values):
    """Numbers of the values from the smallest to the largest, by merging runs; `np.argsort` compiles for seconds."""
    order, merged = np.arange(values.size), np.empty(values.size, np.int64)
    width = 1
    while width < values.size:
        for start in range(0, values.size, 2 * width):
            middle, stop = min(start + width, values.size), min(start + 2 * width, values.size)
            a, b = start, middle
            for place in range(start, stop):
                if b >= stop or (a < middle and values[order[a]] <= values[order[b]]):
                    merged[place] = order[a]
                    a += 1
                else:
                    merged[place] = order[b]
                    b += 1
        order, merged = merged, order
        width *= 2
    return order


@njit(cache=True, nogil=True)
def _ranks(values, tolerance):
    """Order of the values and the rank of each; neighbours closer than the tolerance share one."""
    order = _order(values)
    rank = np.empty(values.size, dtype=np.int64)
    current = 0
    for place in range(values.size):
        if place > 0 and values[order[place]] - values[order[place - 1]] > tolerance:
            current += 1
        rank[order[place]] = current
    return order, rank


@njit(cache=True, nogil=True)
def _row_with_later_rows(first, last, row, starts, columns, y, scores, tolerances):
    """Concordant and comparable interactions of one row with the later ones from first to last.

    Differences of y, and of scores, that are within their tolerance are ties.
    """
    concordant = comparable = 0.0
    for later in range(first, last):
        a, a_end = starts[row], starts[row + 1]
        b, b_end = starts[row + 1 + later], starts[row + 2 + later]
        size = min(a_end - a, b_end - b)
        d = np.empty(size)
        e = np.empty(size)
        common = 0
        while a < a_end and b < b_end:
            if columns[a] < columns[b]:
                a += 1
            elif columns[a] > columns[b]:
                b += 1
            else:
                d[common] = y[a] - y[b]
                e[common] = scores[a] - scores[b]
                common += 1
                a += 1
                b += 1
        if common > 1:
            order, d_rank = _ranks(d[:common], tolerances[0])
            _, e_rank = _ranks(e[:common], tolerances[1])
            found = _concordance(d_rank[order], e_rank[order], common, np.ones(common))
            concordant += found[0]
            comparable += found[1]
    return concordant, comparable


def _checked_objects(name: str, values: Any, n: int) -> np.ndarray:
    """Return the objects numbered from 0 without gaps."""
    array = check_labels(name, values, n)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}.")
    return np.unique(array, return_inverse=True)[1]


def _precision(values: Any) -> Any:
    """The floating-point type in which the values were rounded."""
    dtype = to_numpy(values).dtype
    return dtype if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)
