"""The memory that the client and its trainer share: the weights, the result and a third vector."""

import mmap
import os

import numpy as np


class SharedVectors:
    def __init__(self, file: int, elements: int):
        """Maps the file, which it closes. Its size tells float32 from bfloat16, which is uint16 here."""
        try:
            size = os.fstat(file).st_size
            self._map = mmap.mmap(file, size)
        finally:
            os.close(file)
        dtype = np.uint16 if size == 3 * 2 * elements else np.float32
        vectors = np.frombuffer(self._map, dtype=dtype, count=3 * elements)
        self.weights = vectors[:elements]
        self.result = vectors[elements:2 * elements]
