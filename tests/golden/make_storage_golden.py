#!/usr/bin/env python3
"""Writes the golden files of storage/SCHEMA.md's formats, from that text and not from the C++ code. Only the SQL of the
databases of version 1 comes from storage/migrations_first.cc and storage/audit_log.cc, where it never changes.

Run it in this directory. Needs Debian's libxxhash0.
"""
import ctypes
import os
import re
import sqlite3
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


def manifest(flags, lineage, generation, prev, dense=b"", outbox=b"", trainer=b"", sealed=bytes(44), history=b"", metrics=b"",
             family=None, cohort=(0, 0), parted=b""):
    """`sealed`: update_id, round, base_version, train_us, loss. `family`: None where nothing is of format 4."""
    number = 4 if family else 3 if metrics else 2 if history else 1
    body = b"TRSM" + struct.pack("<II", number, flags) + lineage + struct.pack("<q", generation) + prev
    body += blob(generation, dense) + blob(generation, outbox) + blob(generation, trainer)
    body += sealed + bytes(4)
    if number >= 2:
        body += blob(generation, history)
    if number >= 3:
        body += struct.pack("<I", len(metrics)) + metrics
    if number >= 4:
        body += family + struct.pack("<qq", *cohort) + blob(generation, parted)
    return body + hash_bytes(body)


def parted_update(fields, cohort, metrics, message):
    """`fields`: as `sealed` of a manifest."""
    return fields + struct.pack("<qqIQ", *cohort, len(metrics), len(message)) + metrics + message


def parted_lineage(lineage, prev, update=b""):
    return lineage + prev + struct.pack("<I", 1 if update else 0) + update


def parted_lineages(*lineages):
    return b"TRSP" + struct.pack("<II", 1, len(lineages)) + b"".join(lineages)


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
write("manifest_history.bin", manifest(2, LINEAGE, 7, PREVIOUS, DENSE, b"message", b"trainer", SEALED, b"history"))

# Kind, length of the name, name, value, samples as a varint.
METRICS = bytes([1, 4]) + b"norm" + struct.pack("<d", -0.5) + bytes([0x80, 0x05])
METRICS += bytes([2, 8]) + b"accuracy" + struct.pack("<d", 0.75) + bytes([100])
write("manifest_metrics.bin", manifest(2, LINEAGE, 7, PREVIOUS, DENSE, b"message", b"trainer", SEALED, metrics=METRICS))

FAMILY = bytes(range(48, 64))
OLDER = bytes(range(64, 80))
PARTED = parted_lineages(
    parted_lineage(OLDER, bytes(16)),
    parted_lineage(FAMILY, PREVIOUS, parted_update(UPDATE + struct.pack("<qqqf", 9, 8, 1234567, 0.5), (3, 640), METRICS, b"left behind")))
write("parted.bin", PARTED)
write("manifest_family.bin", manifest(0, LINEAGE, 0, bytes(16), family=FAMILY))
write("manifest_moved.bin", manifest(2, LINEAGE, 7, PREVIOUS, DENSE, b"message", b"trainer", SEALED, b"history", METRICS, FAMILY,
                                     (5, 1000), PARTED))
write("manifest_root.bin", manifest(0, FAMILY, 7, PREVIOUS, DENSE, family=FAMILY, parted=parted_lineages(parted_lineage(OLDER, bytes(16)))))
write("checkpoint.bin", weights_file(b"TRSC", 12, hash_bytes(DENSE), WEIGHTS))
write("cached_model.bin", weights_file(b"TRSW", 12, LINEAGE, WEIGHTS))


def model_hash(version):
    """Weights of version v: four times v."""
    return hash_bytes(struct.pack("<4f", *[version] * 4))


def update_id(round_id, client):
    return struct.pack(">QQ", round_id, client + 1)


def write_database(name):
    """Rounds 1 and 2 committed with updates of clients 0 and 1, round 3 aborted, round 4 open."""
    if os.path.exists(name):
        os.remove(name)
    with open("../../storage/migrations_first.cc") as file:
        sql = re.search(r'kVersion1\[\] = R"sql\((.*?)\)sql"', file.read(), re.DOTALL).group(1)
    db = sqlite3.connect(name)
    db.execute("PRAGMA journal_mode=WAL")
    db.executescript("BEGIN;" + sql + "PRAGMA user_version=1; COMMIT;")

    def insert(table, *rows):
        db.executemany("INSERT INTO %s VALUES (%s)" % (table, ", ".join("?" * len(rows[0]))), rows)

    none = bytes(16)
    insert("runs", (1, "mnist", LINEAGE, b"config\0bytes", 4, "active", 100))
    db.execute("UPDATE head SET version = 2, model_hash = ?, epoch = 3", (model_hash(2),))
    insert("rounds",
           (1, "committed", 0, 1000, 1002, 1003, 2, 1001, 1.0, None, None),
           (2, "committed", 1, 2000, 2002, 2003, 2, 1001, 1.0, 0.75, 0.5),
           (3, "aborted", 2, 3000, 3002, 3003, 1, 1000, None, None, None),
           (4, "open", 2, 4000, 0, 0, 0, 0, None, None, None))
    insert("clients",
           (0, "a", update_id(2, 0), 5, 2003, 2, 1, 0),
           (1, "b", update_id(2, 1), 6, 2003, 2, 0, 1),
           (2, "c", none, 7, 7, 0, 0, 0))
    insert("updates", *[(r, c, update_id(r, c), update_id(r - 1, c) if r > 1 else none, hash_bytes(b"message"), 100,
                         1000 + c, 0.5 + c) for r in (1, 2) for c in (0, 1)],
           (3, 0, update_id(3, 0), update_id(2, 0), hash_bytes(b"late"), 100, 1000, None))
    insert("ledger", *[(r, c, d, 400, 20, 30) for r in (0, 1, 2) for c in (0, 1) for d in ("up", "down")])
    insert("events", (1, 3003, "round_aborted", 3, -1, "deadline"), (2, 3004, "client_left", 0, 2, "gone"))
    insert("downstream_log", *[(v, model_hash(v), b"message %d" % v) for v in (1, 2)])
    insert("checkpoints", (0, model_hash(0), 72, 0))
    db.commit()
    db.close()


write_database("run_version_1.sqlite")


def checksum(*values):
    """terse_checksum of integers and texts."""
    body = b""
    for value in values:
        if isinstance(value, int):
            body += struct.pack("<Bq", 1, value)
        else:
            body += b"\3" + hash_bytes(value.encode())
    return struct.unpack(">q", hash_bytes(body)[8:])[0]


def write_audit_log(name):
    """A pause that went well, refusals that were counted together, a shutdown that has not ended."""
    if os.path.exists(name):
        os.remove(name)
    with open("../../storage/audit_log.cc") as file:
        sql = re.search(r'kMigrations\[\] = \{\{R"sql\((.*?)\)sql"', file.read(), re.DOTALL).group(1)
    db = sqlite3.connect(name)
    db.create_function("terse_checksum", -1, checksum, deterministic=True)
    db.executescript("BEGIN;" + sql + "PRAGMA user_version=1; COMMIT;")
    db.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [
        (41, 1700000000000000, 1700000000250000, "operator ada", "1f", "ipv4:192.0.2.1:4711", "Pause", "demo",
         "reason: maintenance", "ok", 1),
        (42, 1700000001000000, 1700000059000000, "client edge-1", "2a", "", "Pause", "", "",
         "PERMISSION_DENIED: not an operator", 17),
        (43, 1700000060000000, 0, "socket", "", "unix:", "Stop", "", "shutdown", "", 1)])
    db.commit()
    db.close()


write_audit_log("audit_version_1.sqlite")
