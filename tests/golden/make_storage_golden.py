#!/usr/bin/env python3
"""Writes the golden files of storage/SCHEMA.md's formats, from that text and not from the C++ code.

Run it in this directory. Needs Debian's libxxhash0.
"""
import ctypes
import struct

XXH = ctypes.CDLL("libxxhash.so.0")


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


XXH.XXH3_128bits.restype = Hash128
XXH.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def hash_bytes(data):
    value = XXH.XXH3_128bits(data, len(data))
    return struct.pack(">QQ", value.high, value.low)


def blob(generation, data):
    return struct.pack("<qQ", generation, len(data)) + hash_bytes(data) if data else bytes(32)


def manifest(flags, lineage, generation, prev, dense=b"", outbox=b"", trainer=b"", sealed=bytes(44)):
    """`sealed`: update_id, round, base_version, train_us, loss."""
    body = b"TRSM" + struct.pack("<II", 1, flags) + lineage + struct.pack("<q", generation) + prev
    body += blob(generation, dense) + blob(generation, outbox) + blob(generation, trainer)
    body += sealed + bytes(4)
    return body + hash_bytes(body)


def weights_file(magic, version, identity, values):
    body = magic + struct.pack("<Iq", 1, version) + identity + struct.pack("<Q", len(values))
    body += struct.pack("<%df" % len(values), *values)
    return body + hash_bytes(body)


def write(name, data):
    with open(name, "wb") as file:
        file.write(data)


LINEAGE = bytes(range(16))
PREVIOUS = bytes(range(16, 32))
UPDATE = bytes(range(32, 48))
WEIGHTS = [1.0, -2.5, 0.125]
DENSE = struct.pack("<3f", *WEIGHTS)
SEALED = UPDATE + struct.pack("<qqqf", 9, 8, 1234567, 0.5)

write("manifest_begun.bin", manifest(0, LINEAGE, 0, bytes(16)))
write("manifest_dirty.bin", manifest(1, LINEAGE, 7, PREVIOUS))
write("manifest_sealed.bin", manifest(2, LINEAGE, 7, PREVIOUS, DENSE, b"message", b"trainer", SEALED))
write("manifest_applied.bin", manifest(0, LINEAGE, 7, UPDATE, DENSE, b"message", b"trainer"))
write("checkpoint.bin", weights_file(b"TRSC", 12, hash_bytes(DENSE), WEIGHTS))
write("cached_model.bin", weights_file(b"TRSW", 12, LINEAGE, WEIGHTS))
