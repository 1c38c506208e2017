"""Writes the arrays that numpy_test.cc and tensors_test.cc read: save_arrays.py numpy|torch FOLDER"""

import sys

import numpy as np

kind, folder = sys.argv[1:]
x = np.arange(24).reshape(4, 2, 3)
y = np.array([0, 3, 1, 2])
dtypes = {"u1": np.uint8, "f4": np.float32, "f8": np.float64, "i4": np.int32, "i8": np.int64, "b1": np.bool_}

if kind == "numpy":
    for name, dtype in dtypes.items():
        np.savez(f"{folder}/{name}.npz", x=x.astype(dtype), y=y)
        np.savez_compressed(f"{folder}/{name}_compressed.npz", features=x.astype(dtype), targets=y)
        np.save(f"{folder}/{name}.npy", x.astype(dtype))
    for version in [(1, 0), (2, 0), (3, 0)]:
        with open(f"{folder}/version_{version[0]}.npy", "wb") as out:
            np.lib.format.write_array(out, x.astype(np.float32), version)
    np.save(f"{folder}/fortran.npy", np.asfortranarray(x))
    np.save(f"{folder}/big.npy", x.astype(">f4"))
    np.save(f"{folder}/scalar.npy", np.float32(1))
    np.save(f"{folder}/complex.npy", x.astype(np.complex64))
    np.save(f"{folder}/short.npy", x.astype(np.int16))
    np.save(f"{folder}/text.npy", np.array(["oak", "elm"]))
    np.save(f"{folder}/object.npy", np.array([None, 1], dtype=object))
    np.save(f"{folder}/record.npy", np.zeros(3, dtype=[("a", "<f4"), ("b", "<i4")]))
else:
    import torch

    for name, dtype in dtypes.items():
        torch.save({"x": torch.from_numpy(x.astype(dtype)), "y": torch.from_numpy(y)}, f"{folder}/{name}.pt")
    torch.save({"features": torch.from_numpy(x).half(), "targets": torch.rand(4, 2)}, f"{folder}/values.pt")
    # Views with strides, and an entry more than is asked for.
    wide = torch.arange(48, dtype=torch.float32).reshape(3, 2, 8)[:, :, ::2].permute(2, 1, 0)
    torch.save({"x": wide, "y": torch.from_numpy(y), "note": "strides"}, f"{folder}/view.pt")
    torch.save(torch.from_numpy(x), f"{folder}/tensor.pt")
    torch.save({"x": torch.from_numpy(x), "z": torch.from_numpy(y)}, f"{folder}/no_y.pt")
    torch.save({"x": torch.tensor(1.0), "y": torch.tensor(1)}, f"{folder}/scalar.pt")
    torch.save({"x": torch.zeros(4, dtype=torch.complex64), "y": torch.from_numpy(y)}, f"{folder}/complex.pt")
