"""A small load of `terse-bench fleet`, over cleartext and TLS, with and without relays: its figures, and that it was a
right run.

fleet_test.py --bin build/release/bin
"""
import argparse
import json
import subprocess
import sys
import unittest

CLIENTS, PROCESSES, ROUNDS = 20, 2, 3
FIGURES = ["join_s", "round_s_p50", "round_s_p99", "coordinator_cpu_us_per_client_round",
           "coordinator_cpu_us_per_round", "coordinator_base_mib", "coordinator_peak_mib", "bytes_up_per_client_round",
           "bytes_down_per_client_round", "coordinator_bytes_up_per_round", "coordinator_bytes_down_per_round",
           "syncs_per_round", "event_us_p50"]
OF_A_RELAY = ["clients", "cpu_us_per_client_round", "base_mib", "peak_mib", "kib_per_client", "syncs_per_round"]


def load(*arguments, parameters=5000):
    command = [f"{OPTIONS.bin}/terse-bench", "fleet", "--clients", str(CLIENTS), "--processes", str(PROCESSES),
               "--rounds", str(ROUNDS), "--parameters", str(parameters), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


class FleetTest(unittest.TestCase):
    def figures(self, *arguments, **options):
        done = load("--json", *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads(done.stdout)
        self.assertEqual(list(figures), ["settings", *FIGURES, "relays", "load"])
        return figures

    def check_run(self, figures):
        of_load = figures["load"]
        # The run goes on until the end reaches it, so there may be more of both.
        self.assertGreaterEqual(of_load["models_checked"], PROCESSES * ROUNDS)
        self.assertGreaterEqual(of_load["updates_applied"], CLIENTS * ROUNDS)
        self.assertLessEqual(of_load["updates_not_applied"], CLIENTS)
        self.assertEqual(of_load["resets"], 0)
        self.assertEqual(of_load["connections"], CLIENTS)
        self.assertEqual(of_load["refusals"], 0)
        self.assertEqual(of_load["downloads"], PROCESSES)
        # A perceptron has 100 weights an input, 100 biases and 1,010 numbers behind its hidden layer.
        self.assertEqual(figures["settings"]["parameters"], 39 * 100 + 100 + 1010)
        for name in FIGURES:
            if name != "event_us_p50":
                self.assertGreater(figures[name], 0, name)
        self.assertLessEqual(figures["round_s_p50"], figures["round_s_p99"])
        self.assertLessEqual(figures["coordinator_base_mib"], figures["coordinator_peak_mib"])
        self.assertGreater(of_load["wire_bytes_up_per_client_round"], figures["bytes_up_per_client_round"])

    def check_relays(self, figures, clients_of):
        self.assertEqual(figures["settings"]["relays"], len(clients_of))
        self.assertEqual([relay["clients"] for relay in figures["relays"]], clients_of)
        for relay in figures["relays"]:
            self.assertEqual(list(relay), OF_A_RELAY)
            self.assertGreater(relay["cpu_us_per_client_round"], 0)
            self.assertGreater(relay["syncs_per_round"], 0)
            self.assertLess(relay["base_mib"], relay["peak_mib"])
            self.assertAlmostEqual(relay["kib_per_client"] * relay["clients"],
                                   1024 * (relay["peak_mib"] - relay["base_mib"]), delta=1)

    def test_cleartext_with_forwarded_updates(self):
        figures = self.figures("--downstream", "forward")
        self.check_run(figures)
        self.check_relays(figures, [])
        self.assertEqual(figures["settings"]["downstream"], "forward")
        self.assertGreater(figures["event_us_p50"], 0)
        # All updates come down again, with a few bytes around each.
        forwarded = CLIENTS * figures["bytes_up_per_client_round"]
        self.assertGreater(figures["bytes_down_per_client_round"], forwarded)
        self.assertLess(figures["bytes_down_per_client_round"], 1.1 * forwarded)

    def test_tls_with_a_codec_downstream(self):
        figures = self.figures("--downstream", "stc", "--tls")
        self.check_run(figures)
        self.assertGreater(figures["load"]["certificates_s"], 0)
        self.assertLess(figures["bytes_down_per_client_round"], 2 * figures["bytes_up_per_client_round"])

    def test_relays_with_forwarded_updates(self):
        """The coordinator hears two clients, whose updates are as long as a client's, and sends what they sent."""
        figures = self.figures("--relays", "2", "--downstream", "forward")
        self.check_run(figures)
        self.check_relays(figures, [CLIENTS // 2, CLIENTS // 2])
        self.assertAlmostEqual(figures["coordinator_cpu_us_per_client_round"] * CLIENTS,
                               figures["coordinator_cpu_us_per_round"], places=3)
        update = figures["bytes_up_per_client_round"]
        self.assertGreater(figures["coordinator_bytes_up_per_round"], 2 * 0.8 * update)
        self.assertLess(figures["coordinator_bytes_up_per_round"], 2 * 1.2 * update)
        # Each client gets the same bytes as each relay.
        self.assertAlmostEqual(figures["bytes_down_per_client_round"], figures["coordinator_bytes_down_per_round"] / 2,
                               delta=0.02 * figures["bytes_down_per_client_round"])

    def test_relays_that_forward(self):
        """The coordinator hears all clients from two relays, with a few bytes around each update."""
        figures = self.figures("--relays", "2", "--relay-mode", "forward", "--downstream", "stc")
        self.check_run(figures)
        self.check_relays(figures, [CLIENTS // 2, CLIENTS // 2])
        self.assertEqual(figures["settings"]["relay_mode"], "forward")
        updates = CLIENTS * figures["bytes_up_per_client_round"]
        self.assertGreater(figures["coordinator_bytes_up_per_round"], updates)
        self.assertLess(figures["coordinator_bytes_up_per_round"], 1.2 * updates)

    def test_relays_over_tls(self):
        figures = self.figures("--relays", "3", "--downstream", "stc", "--tls")
        self.check_run(figures)
        self.check_relays(figures, [7, 7, 6])

    def test_a_relay_without_clients_is_refused(self):
        done = load("--relays", str(CLIENTS + 1))
        self.assertEqual(done.returncode, 1)
        self.assertIn("each of 21 relays needs a client, and there are 20", done.stderr)

    def test_other_models(self):
        """The row of the table with just that size, and more inputs than the reader of a short file would take."""
        for wanted, model, parameters in ((431080, "lenet5_caffe", 431080), (300000, "perceptron", 2989 * 100 + 1110)):
            settings = self.figures(parameters=wanted)["settings"]
            self.assertEqual((settings["model"], settings["parameters"]), (model, parameters))

    def test_the_table_has_the_settings(self):
        done = load()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("20 clients in 2 processes, cleartext; perceptron with 5010 parameters", done.stdout)

    def test_the_table_has_the_relays(self):
        done = load("--relays", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("20 clients behind 2 relays (recompress) in 2 processes, cleartext;", done.stdout)
        self.assertEqual(done.stdout.count("a relay of 10 clients: processor time"), 2)

    def test_what_the_product_refuses_is_said(self):
        done = load("--downstream", "nothing")
        self.assertEqual(done.returncode, 1)
        self.assertIn("codec.downstream", done.stderr)

    def test_a_mode_of_relays_needs_relays(self):
        done = load("--relay-mode", "forward")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--relay-mode requires --relays", done.stderr)

    def test_too_few_open_files_are_said_with_the_remedy(self):
        done = subprocess.run(["sh", "-c", f"ulimit -n 300; {OPTIONS.bin}/terse-bench fleet --clients 20 --rounds 2"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "20 clients needs 532 open files, and the system allows 300; raise the hard limit")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the executables")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
