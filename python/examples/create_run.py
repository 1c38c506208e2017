"""Has a coordinator serve the quickstart's run: create_run.py ADMIN FOLDER"""
import sys

import terse
from spirals import make_model

run = terse.Run("spirals", model=make_model(), codec=terse.codecs.sbc(density=0.05), rounds=100, clients=2, local_steps=20)
run.create(sys.argv[2], admin=sys.argv[1])
