// Workers as threads of the test: each gets its rank and the group "dp" of all of them.
//
//   run_workers(2, [](int rank, const auto& groups) {
//     runtime::Executor exe({.plan = {.groups = groups}});
//     ...
//   });
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "fleetx/comm/groups.h"

namespace fleetx::testing {

using SharedGroups = std::shared_ptr<const comm::Groups>;

// Throws what the first worker has thrown that did.
inline void run_workers(int count, const std::function<void(int, const SharedGroups&)>& body,
                        comm::Milliseconds timeout = comm::Milliseconds(20'000)) {
  auto ranks = comm::make_local(count, timeout);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    auto groups = std::make_shared<comm::Groups>();
    groups->add("dp", std::move(ranks[static_cast<size_t>(rank)]));
    threads.emplace_back([&body, &errors, rank, groups = SharedGroups(std::move(groups))] {
      try {
        body(rank, groups);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace fleetx::testing
