"""Whether an installed wheel works where nothing else of Terse is (tests/wheel.sh). Prints one line."""
import os
import signal
import subprocess
import sys
import tempfile
import threading

import numpy

import terse

MODEL = {"weight": numpy.zeros((3, 4), dtype=numpy.float32)}


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


with tempfile.TemporaryDirectory() as folder:
    terse.Run("wheel", model=MODEL, codec=terse.codecs.sbc(), rounds=3, clients=1).save(folder)
    valid = output_of(terse._client.find_program("tersectl"), "validate", f"{folder}/run.toml")
    assert "valid; run wheel, 3 rounds" in valid, valid
    # Nobody answers there: the client starts, tries again and again, and is stopped.
    with terse.join("127.0.0.1:1", state=f"{folder}/state", log_level="error") as fleet:
        threading.Timer(1, lambda: os.kill(fleet.client_pid, signal.SIGTERM)).start()
        try:
            next(fleet.rounds(MODEL))
            raise AssertionError("a round without a coordinator")
        except terse.ClientError as error:
            assert "stopped before the run was over" in str(error), error
assert output_of(f"{sys.prefix}/bin/terse", "--version") == terse.__version__
# Codecs are torch-free, and their extension is the wheel's.
update = numpy.linspace(-1, 1, 10000, dtype=numpy.float32)
residual = numpy.zeros_like(update)
message = terse.codecs.sbc().encode(update, residual)
decoded = terse.codecs.sbc().decode(message, update)
assert len(message) < 200 and numpy.array_equal(residual, update - decoded), message
extension = terse._coding.extension().__file__
assert extension.startswith(sys.prefix) and "torch" not in sys.modules, extension
client = terse._client.find_program("terse-client")
assert client.startswith(sys.prefix), client
print(f"Python {sys.version.split()[0]}, terse {terse.__version__}, client {output_of(client, '--version')}, "
      f"{extension.rpartition('/')[2]}: 10000 numbers in {len(message)} bytes")
