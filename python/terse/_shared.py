"""The memory that the client and its trainer share: the weights, the result and a third vector, of float32."""

import mmap
import os

import numpy as np


class SharedVectors:
    def __init__(self, file: int, elements: int):
        """Maps the file, which it closes."""
        try:
            self._map = mmap.mmap(file, 3 * 4 * elements)
        finally:
            os.close(file)
        vectors = np.frombuffer(self._map, dtype=np.float32, count=3 * elements)
        self.weights = vectors[:elements]
        self.result = vectors[elements:2 * elements]
