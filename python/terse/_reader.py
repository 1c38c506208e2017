"""Runs as arrays, read from the coordinator's files while it goes on writing them (storage/SCHEMA.md)."""

import os
import pathlib
import sqlite3
import struct

import numpy as np

from .errors import TerseError

DATABASE = "run.sqlite"
_OLDEST_SCHEMA = 9  # the first with sums of every round's bytes

# Each column of rounds(): its type, and where it stands in the database.
_ROUNDS = (
    ("id", "i8", "rounds.id"),
    ("state", "U10", "rounds.state"),
    ("base_version", "i8", "base_version"),
    ("opened_us", "i8", "opened_us"),
    ("closed_us", "i8", "closed_us"),
    ("settled_us", "i8", "settled_us"),
    ("updates", "i8", "updates"),
    ("train_us_max", "i8", "train_us_max"),
    ("train_loss", "f8", "train_loss"),
    ("accuracy", "f8", "accuracy"),
    ("test_loss", "f8", "test_loss"),
    ("top5", "f8", "top5"),
    ("perplexity", "f8", "perplexity"),
    ("payload_bytes_up", "i8", "payload_up"),
    ("wire_bytes_up", "i8", "wire_up"),
    ("payload_bytes_down", "i8", "payload_down"),
    ("wire_bytes_down", "i8", "wire_down"),
    ("dense_bytes_up", "i8", "dense_up"),
    ("dense_bytes_down", "i8", "dense_down"),
)
_FROM_ROUNDS = ("rounds LEFT JOIN round_totals ON round_totals.round = rounds.id LEFT JOIN scores ON scores.round = rounds.id "
                "ORDER BY rounds.id")
_CLIENTS = (
    ("id", "i8", "id"),
    ("name", "U64", "name"),
    ("first_seen_us", "i8", "first_seen_us"),
    ("last_seen_us", "i8", "last_seen_us"),
    ("updates_applied", "i8", "updates_applied"),
    ("updates_not_applied", "i8", "updates_not_applied"),
    ("resets", "i8", "resets"),
    ("samples", "i8", "samples"),
)
_SCHEMA_WITH_METRICS = 12
_METRICS = (
    ("round", "i8", "round"),
    ("kind", "U10", "CASE kind WHEN 1 THEN 'training' WHEN 2 THEN 'evaluation' ELSE 'test' END"),
    ("name", "U64", "name"),
    ("mean", "f8", "mean"),
    ("clients", "i8", "clients"),
    ("samples", "i8", "samples"),
)
_OF_CLIENTS = (("round", "i8"), ("client", "i8"), ("client_name", "U64"), ("kind", "U10"), ("name", "U64"), ("value", "f8"),
               ("samples", "i8"))
_KINDS = {1: "training", 2: "evaluation", 3: "test"}


def _unpacked(metrics: bytes):
    """The metrics of one update: kind, name, value, samples (storage/SCHEMA.md, "Bytes of metrics")."""
    at = 0
    while at < len(metrics):
        kind, size = metrics[at], metrics[at + 1]
        name = metrics[at + 2:at + 2 + size].decode()
        at += 2 + size
        (value,) = struct.unpack_from("<d", metrics, at)
        at += 8
        samples = shift = 0
        while True:
            byte = metrics[at]
            samples |= (byte & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        yield _KINDS.get(kind, str(kind)), name, value, samples


class Table(np.ndarray):
    """A structured array, with a column a field. Numbers that there are not are NaN, or 0 for whole numbers."""

    def to_pandas(self):
        """The same as a pandas.DataFrame, where pandas is installed."""
        import pandas

        return pandas.DataFrame({name: np.asarray(self[name]) for name in self.dtype.names})


class StoredRun:
    """A run's files. Every call reads them anew, so that a run that goes on is seen as it is."""

    def __init__(self, database: pathlib.Path):
        self._database = database
        self._query("SELECT 1")

    def _query(self, sql, oldest=_OLDEST_SCHEMA):
        connection = sqlite3.connect(f"{self._database.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
        try:
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
            if schema < oldest:
                raise TerseError(f"{self._database} has schema {schema}, of an old release: a coordinator of this one brings it up to "
                                 "date when it opens the run")
            return connection.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise TerseError(f"{self._database}: {error}") from error
        finally:
            connection.close()

    def _table(self, columns, source, oldest=_OLDEST_SCHEMA) -> Table:
        rows = self._query(f"SELECT {', '.join(column for _, _, column in columns)} FROM {source}", oldest)
        dtype = [(name, kind) for name, kind, _ in columns]
        empty = tuple(np.nan if kind == "f8" else 0 for _, kind, _ in columns)
        filled = [tuple(default if value is None else value for value, default in zip(row, empty)) for row in rows]
        return np.array(filled, dtype=dtype).view(Table)

    @property
    def name(self) -> str:
        return self._query("SELECT name FROM runs")[0][0]

    @property
    def state(self) -> str:
        """active, paused, stopping, finished or stopped."""
        return self._query("SELECT state FROM runs")[0][0]

    @property
    def version(self) -> int:
        """The number of committed rounds."""
        return self._query("SELECT version FROM head")[0][0]

    def rounds(self) -> Table:
        """A row a round: state, losses, scores, bytes and times, as `tersectl rounds --json` has them."""
        return self._table(_ROUNDS, _FROM_ROUNDS)

    def metrics(self) -> Table:
        """A row a round and metric by name: its mean over the clients that reported it, weighed by their samples.

        kind: "training", "evaluation" (of the weights that the round began with, on the clients' data) or "test" (of those
        that it ended with, by the coordinator's evaluator; clients is 0 then).
        """
        return self._table(_METRICS, "metrics ORDER BY round, kind, name", _SCHEMA_WITH_METRICS)

    def client_metrics(self) -> Table:
        """A row a round, client and metric by name, of the rounds that ledger.keep_rounds keeps."""
        rows = self._query("SELECT round, client, clients.name, metrics FROM update_metrics JOIN clients ON clients.id = client "
                           "ORDER BY round, client", _SCHEMA_WITH_METRICS)
        unpacked = [(*row[:3], *metric) for row in rows for metric in _unpacked(row[3])]
        return np.array(unpacked, dtype=list(_OF_CLIENTS)).view(Table)

    def clients(self) -> Table:
        """A row a client that ever checked in."""
        return self._table(_CLIENTS, "clients ORDER BY id")


def open_run(path) -> StoredRun:
    """The run whose files are in a folder: DIR/runs/NAME of a coordinator's --state DIR, or DIR where it has a single run.

    The coordinator may be running. Raises TerseError where there is no such run.
    """
    folder = pathlib.Path(path)
    if (folder / DATABASE).is_file():
        return StoredRun(folder / DATABASE)
    runs = sorted(os.path.relpath(each.parent, folder) for each in folder.glob(f"*/**/{DATABASE}"))
    hint = f"; below it there are {', '.join(runs)}" if runs else ""
    raise TerseError(f"there is no run in {folder}{hint}")
