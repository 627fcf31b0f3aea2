// The main function of every test binary: runs the tests, or with --perf times the op cases.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/op_runner.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--perf") == 0)
    return fleetx::testing::time_op_cases(argc > 2 ? argv[2] : "");
  fleetx::testing::register_op_tests();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
