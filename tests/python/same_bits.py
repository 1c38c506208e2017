"""Whether clients of two builds, of two kinds of machines, send the same bytes and come to the same weights, bit for bit.

usage: same_bits.py BIN OTHER     (two folders with the programs; run by tests/arm64.sh)

Two clients train the same runs with the programs of either folder.
"""
import hashlib
import json
import sys

import grid_member
import terse
from fleet import Fleet, end, wait_until

ROUNDS = 30
# Settings of a run for each of the codecs' families, up and down.
RUNS = {
    "sbc": (terse.codecs.sbc(density=0.05), "sbc"),
    "top_k": (terse.codecs.top_k(density=0.05), "fp16"),
    "qsgd": (terse.codecs.qsgd(bits=4), "dense"),
    "one_bit": (terse.codecs.one_bit(), "one_bit"),
}


def train(binaries, name):
    """The hash of the last weights, and every round's bytes up and down."""
    codec, downstream = RUNS[name]
    with Fleet(binaries) as fleet:
        fleet.start_coordinator()
        run = terse.Run(name, model=grid_member.make_model(), codec=codec, rounds=ROUNDS, clients=2,
                        settings={"rounds": {"quorum": 2}, "codec": {"downstream": downstream}})
        run.create(str(fleet.folder / "run"), admin=fleet.admin)
        # A client draws its random numbers by its place in the fleet, so that they join in turn.
        members = {"a": fleet.member("a", 1)}
        wait_until(lambda: json.loads(fleet.ctl("clients", "--json")), "the first client joins")
        members["b"] = fleet.member("b", 2)
        for member, process in members.items():
            if end(process, 300) != 0:
                raise AssertionError(fleet.log(member))
        rounds = [(one["payload_bytes_up"], one["payload_bytes_down"]) for one in json.loads(fleet.ctl("rounds", "--json"))]
        weights = fleet.weights()
    digest = hashlib.sha256(b"".join(weights[tensor].tobytes() for tensor in sorted(weights))).hexdigest()
    return digest, rounds


def main():
    differ = 0
    for name in RUNS:
        (digest, rounds), (other_digest, other_rounds) = (train(binaries, name) for binaries in sys.argv[1:3])
        same = digest == other_digest and rounds == other_rounds
        differ += not same
        other = f"the other has {sum(up for up, _ in other_rounds)} bytes up, model {other_digest[:16]}"
        print(f"{name}: {len(rounds)} rounds, {sum(up for up, _ in rounds)} bytes up, model {digest[:16]}: "
              + ("the same" if same else other), flush=True)
    sys.exit(differ)


if __name__ == "__main__":
    main()
