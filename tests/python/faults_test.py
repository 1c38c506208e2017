"""What a user is told whose trainer does something wrong: one clear line, and the run is as it was.

usage: faults_test.py BIN     (run by ctest)
"""
import re
import sys
import unittest

import grid_member
import terse
from fleet import Fleet, end

BIN = sys.argv.pop(1)

# The fault, and what the program's last line says.
FAULTS = {
    "nan": "the trainer left 1 of the 1200 values of tensor 'grid.weight' that are not finite; lower its learning rate, or look "
           "for what in the data makes it diverge",
    "shapes": "has other tensors on this client than on the coordinator; give its trainer the model that the run was made with",
    "dtype": "RunMismatch: 'grid.bias' must be a NumPy array of float32 that can be written",
    "hang": "the trainer took more than the 1 seconds of --trainer-seconds",
    "optimizer": "RunMismatch: an optimizer is one of torch's, for a model of torch; keep the state of others with",
    "no_loss": "RunMismatch: metrics need 'loss', the mean training loss of the round's steps",
    "no_commit": "RunMismatch: round ROUND was left without round.commit()",
    "twice": "RunMismatch: round ROUND was committed already",
    "close": "RunMismatch: the fleet is closed; join again",
}


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(BIN)
        cls.fleet.start_coordinator()
        terse.Run("grid", model=grid_member.make_model(), codec=terse.codecs.sbc(), rounds=1000, clients=1).create(
            str(cls.fleet.folder / "run"), admin=cls.fleet.admin)

    @classmethod
    def tearDownClass(cls):
        cls.fleet.__exit__()

    def run_faulty(self, fault):
        program = self.fleet.python(fault, "faulty_member.py", self.fleet.address, self.fleet.folder / fault, fault)
        code = end(program)
        return code, self.fleet.log(fault)

    def test_each_fault_says_what_it_is(self):
        for fault, said in FAULTS.items():
            with self.subTest(fault):
                code, log = self.run_faulty(fault)
                self.assertEqual(code, 1, log)
                self.assertRegex(log, re.escape(said).replace("ROUND", r"\d+"))

    def test_a_forked_process_can_do_no_harm(self):
        _, log = self.run_faulty("fork")
        self.assertIn("in a fork: ForkedProcess: this process was forked from the one that joined the fleet", log)
        self.assertIn("closed in a fork: nothing", log)
        self.assertIn("closed twice", log)

    def test_a_client_that_is_not_there(self):
        with self.assertRaisesRegex(terse.ClientError, "there is no terse-nothing"):
            terse._client.find_program("terse-nothing")

    def test_settings_are_tables_of_the_run_file(self):
        run = terse.Run("nested", model=grid_member.make_model(), codec=terse.codecs.sbc(), rounds=1, clients=1,
                        settings={"train": {"optimizer": {"momentum_masking": False}}, "durability": "relaxed"})
        self.assertIn("optimizer.momentum_masking = false", run.to_toml())
        run.create(str(self.fleet.folder / "nested"), admin=self.fleet.admin)

    def test_a_codec_by_its_name(self):
        with self.assertRaisesRegex(terse.RunMismatch, r"^the codec is 'sbc'; give one of terse.codecs, such as terse.codecs.sbc\("):
            terse.Run("named", model=grid_member.make_model(), codec="sbc", rounds=1, clients=1)

    def test_a_run_that_the_coordinator_refuses(self):
        run = terse.Run("bad", model=grid_member.make_model(), codec=terse.codecs.sbc(density=2), rounds=1, clients=1)
        with self.assertRaisesRegex(terse.TerseError, "codec.density = 2 is above the allowed range"):
            run.create(str(self.fleet.folder / "bad"), admin=self.fleet.admin)


if __name__ == "__main__":
    unittest.main()
