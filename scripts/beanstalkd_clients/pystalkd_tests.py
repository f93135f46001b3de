"""Runs the tests of pystalkd as its source package has them.

Called by scripts/beanstalkd-clients with the path of their file, and with the port of a server. Run
as a program, the file ends well whatever has happened; so its tests are run from here.
"""

import importlib.util
import random
import sys
import unittest

FILE, PORT = sys.argv[1], int(sys.argv[2])
WHITE_SPACE = b" \t\n\v\f\r"

dice = random.Random(1)
letters = bytes(byte for byte in range(256) if byte not in WHITE_SPACE)


def random_bytes(count):
    """The client strips white space from both ends of a body, and takes a line's end at the end of
    what it has received for the end of the reply. So its tests with random bytes fail by chance,
    whatever the server. These contain none."""
    return bytes(dice.choices(letters, k=count))


spec = importlib.util.spec_from_file_location("pystalkd_test", FILE)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.urandom = random_bytes

names = unittest.TestLoader().getTestCaseNames(module.TestBeanstalkd)
# It reserves from a tube that it has put nothing into, without a time limit. The file does not run
# it either.
names.remove("test_timedelta")
assert len(names) == 10, f"there are other tests than those of version 1.3.0: {names}"
suite = unittest.TestSuite(module.TestBeanstalkd(name, "127.0.0.1", PORT) for name in names)
result = unittest.TextTestRunner(verbosity=2).run(suite)
if not result.wasSuccessful() or result.skipped:
    sys.exit(1)
