"""The memory that scikit-learn's configuration allows for temporary arrays, in bytes.

This is the only place that reads ``working_memory``; everything that stores or streams asks here.
"""

import sklearn


def working_memory() -> float:
    """Return scikit-learn's ``working_memory`` in bytes; it is configured in MiB."""
    return float(sklearn.get_config()["working_memory"]) * 2**20
