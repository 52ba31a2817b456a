"""Run the tests of this folder (or those of the modules named) and end with the line that all test scripts end with."""
import pathlib
import sys
import unittest


def main():
    names = sys.argv[1:] or sorted(path.stem for path in pathlib.Path(__file__).parent.glob("test_*.py"))
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromNames(names))
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
