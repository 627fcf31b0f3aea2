// What most files of the library include: compiled once in builds under sanitizers
// (cmake/precompiled.cmake).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "fleetx/base/error.h"
#include "fleetx/base/names.h"
#include "fleetx/base/threads.h"
#include "fleetx/ir/rewriter.h"
#include "fleetx/kernel/op.h"
