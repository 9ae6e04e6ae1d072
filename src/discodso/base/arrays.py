"""Names for the array types that the modules exchange.

Shapes in docstrings use the letters B (designs in a batch), T (positions), K (tokens in the library)
and P (parametrised tokens).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Bools = NDArray[np.bool_]
