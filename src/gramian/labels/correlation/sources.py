"""Prior correlations of labels, from what is known about them before training.

Every builder returns a symmetric positive definite array R of shape (n_labels, n_labels), in the order of the columns,
rows, nodes or names that it was given. Names do not travel with it: ``pandas.DataFrame(R, Y.columns, Y.columns)`` is
what an estimator puts into the order of its own labels.

Formulas
    Signatures: R = Σ_c p(c) y_c y_cᵀ for classes c with probabilities p(c) and signs y_c = ±1 of their labels;
    Hariharan, Vishwanathan & Varma (2012), §3. Entry (l, k) is the probability that l and k agree minus the probability
    that they differ; the diagonal is one.

    Label matrix: the same over examples instead of classes; centred and scaled, Pearson's correlation.

    Taxonomy: r_lk = decayᵈ for labels d edges apart below one child of the root, 0 for others. It is the correlation of
    a process on the tree in which a child is decay × its parent + independent noise, and that of `TreeStructure` with
    variances 1 at the children of the root and (1 − decay²) decay^(2 − 2 depth) below them.

    Features: r_lk = k(f_l, f_k) / √(k(f_l, f_l) k(f_k, f_k)) for a kernel k on descriptions f of labels.

    Graph: (I + strength · L)⁻¹ with the normalised Laplacian L = I − D^(−1/2) W D^(−1/2), scaled to a unit diagonal.
    The degrees D are sums of |w|, so that negative weights repel: L is positive semidefinite all the same.

A second moment of few classes is singular: 10 classes span 10 of 85 dimensions. Shrinkage towards the diagonal makes it
definite; without it a singular matrix is an error, not a surprise in the solver.

Cost: O(n L²) for moments (of the non-zeros only if sparse), O(L³) to see that R is definite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian._core.validation import check_number, check_shape, listed, repeated
from gramian.kernels import as_kernel
from gramian.labels.correlation.checks import refuse_indefinite, shrunk
from gramian.labels.correlation.inputs import (
    as_numbers,
    in_class_order,
    indicators,
    normalized_weights,
    symmetric_array,
)
from gramian.labels.taxonomy.taxonomy import as_taxonomy


def class_correlation(signatures: Any, priors: Any = None, *, shrinkage: float = 0.1) -> np.ndarray:
    """Correlation of labels by the classes that have them: R = Σ_c p(c) y_c y_cᵀ, shrunk towards I.

    For zero-shot learning: the signatures of the classes to come say which labels go together, whatever the
    training examples say.

    Parameters
    ----------
    signatures : array or DataFrame of shape (n_classes, n_labels), or dict of class: array of shape (n_labels,)
        Which labels each class has, in 0/1 or ±1.
    priors : array of shape (n_classes,), or dict or Series of class: float, default=None
        How frequent the classes are, up to a factor. By default all are equally frequent.
    shrinkage : float, default=0.1
        From 0 to 1; see `shrunk`. 0 is an error where the signatures span fewer dimensions than there are labels.

    Returns
    -------
    ndarray of shape (n_labels, n_labels)
        With a unit diagonal.

    Examples
    --------
    >>> from gramian.labels import class_correlation
    >>> animals = {
    ...     "seal": [1, 0, 0],
    ...     "zebra": [0, 1, 1],
    ...     "horse": [0, 1, 0],
    ... }  # flippers, hooves, stripes
    >>> class_correlation(animals, {"seal": 2, "zebra": 1, "horse": 1}, shrinkage=0.2)
    array([[ 1. , -0.8, -0.4],
           [-0.8,  1. ,  0.4],
           [-0.4,  0.4,  1. ]])
    """
    classes = None
    if isinstance(signatures, Mapping):
        classes, signatures = list(signatures), list(signatures.values())
    elif hasattr(signatures, "columns") and hasattr(signatures, "index"):
        classes = list(signatures.index)
    B = indicators("signatures", signatures, ("n_classes", "n_labels"))
    weights = normalized_weights("priors", in_class_order(priors, classes), B.shape[0], "class")
    name = f"The correlation of {B.shape[0]} classes"
    return _definite(_second_moment(B, weights), name, shrinkage)


def empirical_correlation(
    Y: Any,
    sample_weight: Any = None,
    *,
    shrinkage: float = 0.1,
    centered: bool = False,
    normalize: bool = True,
) -> np.ndarray:
    """Correlation of labels by the examples that have them.

    Parameters
    ----------
    Y : array, sparse array or DataFrame of shape (n_samples, n_labels)
        Which labels each example has, in 0/1 or ±1.
    sample_weight : array of shape (n_samples,), default=None
        Weight 2 is the same as the example twice.
    shrinkage : float, default=0.1
        From 0 to 1; see `shrunk`. 0 is an error where the matrix is singular, as for two equal labels.
    centered : bool, default=False
        False: the mean of y yᵀ for signs y = ±1, as in `class_correlation`; two rare labels are then positively
        correlated, as they mostly agree to be absent. True: Pearson's correlation; a label that all examples have, or
        none, is uncorrelated with the others.
    normalize : bool, default=True
        Whether the diagonal is scaled to one. It matters for ``centered=True`` only: with False it is the covariance
        of the signs, which gives rare labels a small prior variance.

    Returns
    -------
    ndarray of shape (n_labels, n_labels)

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.labels import empirical_correlation
    >>> Y = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 0]])
    >>> empirical_correlation(Y, shrinkage=0.0)
    array([[ 1. ,  0.5,  0. ],
           [ 0.5,  1. , -0.5],
           [ 0. , -0.5,  1. ]])
    >>> empirical_correlation(Y, centered=True, shrinkage=0.25).round(2)
    array([[ 1.  ,  0.43,  0.25],
           [ 0.43,  1.  , -0.43],
           [ 0.25, -0.43,  1.  ]])
    """
    B = indicators("Y", Y, ("n_samples", "n_labels"))
    weights = normalized_weights("sample_weight", sample_weight, B.shape[0], "row of Y")
    R = _covariance(B, weights, normalize) if centered else _second_moment(B, weights)
    return _definite(R, "The correlation of the columns of Y", shrinkage)


def taxonomy_correlation(taxonomy: Any, labels: Any = None, *, decay: float = 0.5) -> np.ndarray:
    """Correlation of labels by their places in a tree: decay to the power of their distance.

    Parent and child have the correlation decay, siblings decay². Labels below different children of the root are
    uncorrelated, as in `TreeStructure`; in a tree without inner nodes all of them are.

    Parameters
    ----------
    taxonomy : Taxonomy, or what `as_taxonomy` takes
    labels : sequence of names of nodes, default=None
        Leaves or inner nodes, in the order of the labels. By default all nodes but the root: ``taxonomy.names[1:]``.
    decay : float, default=0.5
        At least 0, below 1.

    Returns
    -------
    ndarray of shape (n_labels, n_labels)

    Examples
    --------
    >>> from gramian.labels import taxonomy_correlation
    >>> pets = {"cat": "animal", "dog": "animal", "car": None}
    >>> taxonomy_correlation(pets, ["animal", "cat", "dog", "car"])
    array([[1.  , 0.5 , 0.5 , 0.  ],
           [0.5 , 1.  , 0.25, 0.  ],
           [0.5 , 0.25, 1.  , 0.  ],
           [0.  , 0.  , 0.  , 1.  ]])
    """
    tree = as_taxonomy(taxonomy)
    check_number("decay", decay, high=1)
    if decay == 1:
        raise ValueError("decay must be below 1, or labels of a subtree would be one; use 0.99.")
    names = tree.names[1:].tolist() if labels is None else list(labels)
    nodes = np.atleast_1d(tree.index(names))
    if nodes.size == 0:
        raise ValueError("labels is empty: name at least one node, or pass None for all of them.")
    if twice := repeated(names):
        raise ValueError(f"labels must name each node once, but {listed(twice)} is repeated.")
    if 0 in nodes:
        raise ValueError(
            f"labels must not hold the root, {tree.names[0].item()!r}: every example has it. Leave it out."
        )
    distance = tree.distance(nodes[:, None], nodes)
    related = tree.lowest_common_ancestor(nodes[:, None], nodes) > 0
    R = np.where(related, float(decay) ** distance, 0.0)
    return _definite(R, "The correlation by the taxonomy", advice=f"Lower decay={decay:g}.")


def feature_correlation(
    features: Any, kernel: Any = "rbf", *, shrinkage: float = 0.0
) -> np.ndarray:
    """Correlation of labels by a kernel on what describes them, for instance embeddings of their names.

    Parameters
    ----------
    features : array, sparse array or DataFrame of shape (n_labels, n_features)
        One row for each label.
    kernel : str or Kernel, default="rbf"
        A kernel of `gramian.kernels`, or its name; a length scale "scale" is that of these features. It is scaled to
        a unit diagonal, so that "linear" is the cosine.
    shrinkage : float, default=0.0
        From 0 to 1; see `shrunk`. Needed where the matrix is singular: for two labels of equal features, and for
        "linear" with fewer features than labels.

    Returns
    -------
    ndarray of shape (n_labels, n_labels)

    Examples
    --------
    >>> from gramian.labels import feature_correlation
    >>> feature_correlation([[2.0, 0.0], [0.0, 1.0], [-3.0, 3.0]], "linear", shrinkage=0.1).round(3)
    array([[ 1.   ,  0.   , -0.636],
           [ 0.   ,  1.   ,  0.636],
           [-0.636,  0.636,  1.   ]])
    """
    F = sp.csr_array(features) if sp.issparse(features) else as_numbers("features", features)
    F = F.astype(np.float64)
    check_shape("features", F, ("n_labels", "n_features"), "one row for each label")
    if not np.all(np.isfinite(F.data if sp.issparse(F) else F)):
        raise ValueError("features must be finite; they hold NaN or infinity. Impute them first.")
    K = symmetric_array("The kernel of features", as_kernel(kernel).resolve(F)(F))
    scale = np.diagonal(K)
    if scale.min() <= 0:
        worst = int(scale.argmin())
        raise ValueError(
            f"features of label {worst} have no length in this kernel ({scale[worst]:.3g}), so that their correlation "
            "is not defined. Use another kernel, or add a constant feature."
        )
    return _definite(_unit_diagonal(K), "The kernel of features", shrinkage)


def laplacian_correlation(adjacency: Any, *, strength: float = 1.0) -> np.ndarray:
    """Correlation of labels by a graph: neighbours are alike, or unlike where a weight is negative.

    It is ``(I + strength · L)⁻¹`` with the normalised Laplacian L, scaled to a unit diagonal. Labels in different
    components are uncorrelated.

    Parameters
    ----------
    adjacency : array, sparse array or DataFrame of shape (n_labels, n_labels), or networkx.Graph
        Symmetric weights of edges; the diagonal is ignored. A graph gives its labels in the order of ``graph.nodes``,
        with the edge attribute "weight", or 1.
    strength : float, default=1.0
        How far correlations reach; 0 is the identity.

    Returns
    -------
    ndarray of shape (n_labels, n_labels)

    Examples
    --------
    >>> from gramian.labels import laplacian_correlation
    >>> laplacian_correlation([[0, 1, 0], [1, 0, -1], [0, -1, 0]]).round(3)
    array([[ 1.   ,  0.378, -0.143],
           [ 0.378,  1.   , -0.378],
           [-0.143, -0.378,  1.   ]])
    """
    check_number("strength", strength)
    if hasattr(adjacency, "is_directed"):
        from networkx import to_numpy_array

        adjacency = to_numpy_array(adjacency)
    W = symmetric_array("adjacency", adjacency)
    np.fill_diagonal(W, 0.0)
    degree = np.abs(W).sum(axis=1)
    root = np.where(degree > 0, degree, 1.0) ** 0.5
    precision = -float(strength) * W / root / root[:, None]
    precision[np.diag_indices_from(W)] = 1.0 + float(strength) * (degree > 0)
    R = _unit_diagonal(np.linalg.inv(precision))
    return _definite(R, "The correlation by the graph", advice=f"Lower strength={strength:g}.")


def _second_moment(B: Any, weights: np.ndarray) -> np.ndarray:
    """Mean of y yᵀ for the signs y = 2b − 1, from indicators b: sparse ones stay sparse."""
    products, mean = _moments(B, weights)
    R = 4.0 * products - 2.0 * mean - 2.0 * mean[:, None] + 1.0
    np.fill_diagonal(R, 1.0)
    return R


def _covariance(B: Any, weights: np.ndarray, normalize: bool) -> np.ndarray:
    products, mean = _moments(B, weights)
    covariance = 4.0 * (products - mean * mean[:, None])
    variance = 4.0 * mean * (1.0 - mean)
    constant = np.minimum(mean, 1.0 - mean) <= len(weights) * np.finfo(float).eps
    covariance[constant] = covariance[:, constant] = 0.0
    np.fill_diagonal(covariance, np.where(constant, 1.0, variance))
    if normalize:
        return _unit_diagonal(covariance)
    if constant.any():
        raise ValueError(
            f"Y has the same value for every example in columns {listed(np.flatnonzero(constant).tolist())}: their "
            "variance is zero. Leave them out, or pass normalize=True, which gives them variance 1."
        )
    return covariance


def _moments(B: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of b bᵀ and of b."""
    weighted = (sp.diags_array(weights) @ B) if sp.issparse(B) else weights[:, None] * B
    products = B.T @ weighted
    mean = np.asarray(weighted.sum(axis=0))
    return (products.toarray() if sp.issparse(products) else products), mean


def _unit_diagonal(matrix: np.ndarray) -> np.ndarray:
    scale = np.diagonal(matrix) ** 0.5
    R = matrix / scale / scale[:, None]
    np.fill_diagonal(R, 1.0)
    return R


def _definite(R: np.ndarray, name: str, shrinkage: float = 0.0, advice: str = "") -> np.ndarray:
    """Shrink R, and refuse it if it is singular all the same."""
    result = shrunk(R, shrinkage)
    advice = advice or f"Pass a larger shrinkage than {shrinkage:g}, for example 0.1."
    refuse_indefinite(result, name, advice)
    return result
