"""A client whose rounds take long: slow_member.py COORDINATOR STATE SECONDS_A_STEP (progress|silent)

Prints what it does, and in the end the error of a client that was stopped.
"""
import sys
import time

import numpy as np

import terse


def main():
    coordinator, state, pause, reports = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4] == "progress"
    model = {"w": np.zeros(50, dtype=np.float32)}
    try:
        with terse.join(coordinator, state=state) as fleet:
            for current in fleet.rounds(model):
                print("process", fleet.client_pid, "is the client", flush=True)
                for step in range(1, current.local_steps + 1):
                    model["w"] += 0.5
                    time.sleep(pause)
                    print("step", step, "of round", current.number, flush=True)
                    if reports and not current.progress(step):
                        break
                else:
                    current.commit(samples=1, metrics={"loss": 1.0})
        print("finished:", fleet.finished, flush=True)
    except terse.ClientError as error:
        print("member:", error, flush=True)


main()
