"""Large n on one machine: an elevation map by tree-code products, and products next to KeOps and GPyTorch.

    python benchmarks/large_n.py --data DIR [--part map|peers|fit] [--sizes 1000,10000,all] [--picture FILE]
                                 [--neighbours 1] [--tol 1e-6] [--dimensions 2,3,10,784] [--peers PYTHON]

map     Regularised least squares on an elevation map, as in Ratliff & Bagnell (2007), section 6: random subsets of n
        of the N = 769 671 grid points, coordinates in cells, heights standardised, no intercept. RBF
        exp(−‖x − x'‖²/(2σ²)) with σ² = kN/(nπ), so that k points lie within σ on average, and λ = 1/n. Their risk has
        the Hessian K² + λK: it is ½ Σ (u − y)² + (λ/2) ‖f‖², which is our objective, and λ is our
        ``regularization``. Their k is not legible to us; k = 1 is taken, ``--neighbours`` changes it.
        Printed: preparation and seconds of a product by tree code (error bounds 1e-8, which estimators use, and
        1e-6) and streamed, their relative errors ‖K̃b − Kb‖/‖Kb‖ for a normal b against a streamed product in float64
        (all rows up to n = 100 000, 2000 rows beyond); iterations, seconds and peak memory of fits, each in a process
        of its own; root mean squared errors in metres on up to 20 000 training points and 20 000 held-out ones.
        A second table has k = 8 and λ = 0.01, which reconstruct the map better.
        Bars: at n = 100 000 a product is at least 30 times as fast as streamed, fastest of float32 and float64 on
        both sides with a relative error of at most 1e-6; the whole map is fitted in less than 10 minutes and 6 GiB
        in both settings; seconds a product grow close to linearly, with an exponent of at most 1.15 from 10 000 on.
peers   A product of ``operator="auto"`` with one column, n = 20 000, 50 000, 100 000, d = 2, 3, 10, 784, float32,
        normal data, length scale √d, and 0.1 for d = 2, 3, next to KeOps and GPyTorch on the CPU, see
        `kernel_sums.py`, and to plain NumPy in chunks of 512 rows. Bar: the best of KeOps and GPyTorch is never
        faster. They run in the same run, in the interpreter ``--peers`` (default: $PEERS_PYTHON, else this one), which
        needs ``pip install torch pykeops gpytorch``, a C++ compiler and NumPy. What is not there is said to be missing.
fit     ``KernelLogisticRegression(RBF(4.5), tol=1e-6)`` for generated data, n = 50 000, 20 features, 5 classes, whose
        kernel values are streamed; what a callback sees first; its own low rank of 1000 functions, in the manner of
        falkon; and scikit-learn's ``SVC`` on 10 000 rows. The floor is the time of the exponentials of all products.
        Bars with two threads: the fit takes at most 90 s, the first model 10 s, prediction of all rows 3 s. It reads no
        data. ThunderSVM (0.3.12) is not compared: it does not load without the libraries of CUDA 9.

Without ``--part`` all run. ``--sizes`` replaces the sizes of each.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numba
from data import add_data_argument, load_elevation, machine
from large_n_fit import fit_part
from large_n_map import Setting, map_part
from large_n_peers import peers_part
from tables import Outcomes

MAP_SIZES = "1000,3000,10000,30000,100000,300000,all"
PEER_SIZES = "20000,50000,100000"
FIT_SIZES = "50000"
DIMENSIONS = "2,3,10,784"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_argument(parser)
    parser.add_argument("--part", choices=("map", "peers", "fit"), help="default: all")
    defaults = "; ".join((MAP_SIZES, PEER_SIZES, FIT_SIZES))
    parser.add_argument("--sizes", help=f"comma-separated (default {defaults})")
    parser.add_argument("--picture", metavar="FILE", help="where to draw the map")
    parser.add_argument("--neighbours", type=float, default=1.0, metavar="K", help="σ² = KN/(nπ)")
    parser.add_argument("--tol", type=float, default=1e-6, help="relative gap of the fits")
    parser.add_argument("--dimensions", default=DIMENSIONS, help="of the peers' part")
    parser.add_argument(
        "--peers",
        metavar="PYTHON",
        default=os.environ.get("PEERS_PYTHON", sys.executable),
        help="interpreter with KeOps and GPyTorch (default: $PEERS_PYTHON, else this one)",
    )
    arguments = parser.parse_args()
    if arguments.part in (None, "map"):
        points = load_elevation(arguments.data).size
    print(f"{machine()}; {numba.get_num_threads()} threads; load {os.getloadavg()[0]:.1f}")
    outcomes: Outcomes = []
    for part in ("map", "peers", "fit") if arguments.part is None else (arguments.part,):
        print(f"\n## {part}", flush=True)
        start = time.perf_counter()
        if part == "map":
            names = (arguments.sizes or MAP_SIZES).split(",")
            sizes = [points if name == "all" else int(name) for name in names]
            outcomes += map_part(
                arguments.data,
                sizes,
                Setting(arguments.neighbours),
                arguments.tol,
                arguments.picture,
            )
        elif part == "fit":
            sizes = [int(name) for name in (arguments.sizes or FIT_SIZES).split(",")]
            outcomes += fit_part(sizes, arguments.tol)
        else:
            sizes = [int(name) for name in (arguments.sizes or PEER_SIZES).split(",")]
            dimensions = [int(name) for name in arguments.dimensions.split(",")]
            outcomes += peers_part(arguments.peers, sizes, dimensions)
        print(f"\n({time.perf_counter() - start:.0f} s in all)", flush=True)
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
