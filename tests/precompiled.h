// What most tests include: compiled once in builds under sanitizers (cmake/precompiled.cmake). None
// of tests/support: with the namespace fleetx::testing, `testing::Test` means something else to a
// test that does not include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/text.h"
#include "fleetx/nn/nn.h"
#include "fleetx/optim/optimizer.h"
#include "fleetx/runtime/executor.h"
#include "fleetx/tensor/tensor.h"
