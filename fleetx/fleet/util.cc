#include "fleetx/fleet/util.h"

#include <algorithm>
#include <iostream>

#include "fleetx/base/error.h"

namespace fleetx::fleet {
namespace {

template <class T>
constexpr DType kType = std::is_same_v<T, double> ? f64 : i64;

comm::ReduceOp op_of(std::string_view mode) {
  if (mode == "sum") return comm::ReduceOp::kSum;
  if (mode == "min") return comm::ReduceOp::kMin;
  check_arg(mode == "max", "all_reduce: mode '", mode, "' is not one of sum, min, max");
  return comm::ReduceOp::kMax;
}

template <class T>
std::vector<T> firsts(const std::vector<std::vector<T>>& lists) {
  std::vector<T> values;
  for (const std::vector<T>& list : lists) values.push_back(list.front());
  return values;
}

}  // namespace

std::vector<std::string> get_file_shard(const std::vector<std::string>& files, int index, int num) {
  check_arg(num > 0 && index >= 0 && index < num, "get_file_shard: worker ", index, " of ", num);
  const size_t n = static_cast<size_t>(num), i = static_cast<size_t>(index);
  const size_t each = files.size() / n, more = files.size() % n;
  const auto begin = files.begin() + static_cast<std::ptrdiff_t>(i * each + std::min(i, more));
  return {begin, begin + static_cast<std::ptrdiff_t>(each + (i < more))};
}

Util::Util(comm::Communicator& workers)
    : Util({.group = [&workers](std::string_view comm_world) -> comm::Communicator& {
              check_arg(comm_world != "server",
                        "comm_world 'server': this job has no parameter servers");
              return workers;
            },
            .place = [&workers] { return std::pair(workers.rank(), workers.size()); },
            .barrier = [&workers] { workers.barrier(); }}) {}

comm::Communicator& Util::group(std::string_view call, std::string_view comm_world) const {
  check_arg(comm_world == "worker" || comm_world == "server" || comm_world == "all", call,
            ": comm_world '", comm_world, "' is not one of worker, server, all");
  return job_.group(comm_world);
}

std::vector<int64_t> Util::gather_one(comm::Communicator& group, int64_t value) {
  std::vector<int64_t> all(static_cast<size_t>(group.size()));
  group.all_gather(&value, all.data(), 1, i64);
  return all;
}

template <class T>
std::vector<T> Util::reduce(std::vector<T> values, std::string_view mode,
                            std::string_view comm_world) const {
  comm::Communicator& all = group("all_reduce", comm_world);
  const comm::ReduceOp op = op_of(mode);
  // Different lengths would hang or mix up values; this way all workers get the same error.
  const std::vector<int64_t> counts = gather_one(all, static_cast<int64_t>(values.size()));
  for (size_t rank = 1; rank < counts.size(); ++rank)
    check_arg(counts[rank] == counts[0], "all_reduce: worker 0 gives ", counts[0],
              " values, worker ", rank, " gives ", counts[rank]);
  if (!values.empty()) all.all_reduce(values.data(), counts[0], kType<T>, op);
  return values;
}

template <class T>
std::vector<std::vector<T>> Util::gather(const std::vector<T>& values,
                                         std::string_view comm_world) const {
  comm::Communicator& members = group("all_gather", comm_world);
  const std::vector<int64_t> counts = gather_one(members, static_cast<int64_t>(values.size()));
  const size_t most = static_cast<size_t>(*std::ranges::max_element(counts));
  std::vector<T> own = values, all(most * counts.size());
  own.resize(most);
  if (most > 0) members.all_gather(own.data(), all.data(), static_cast<int64_t>(most), kType<T>);
  std::vector<std::vector<T>> result;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * most);
    result.emplace_back(begin, begin + counts[rank]);
  }
  return result;
}

std::vector<double> Util::all_reduce(std::vector<double> values, std::string_view mode,
                                     std::string_view comm_world) const {
  return reduce(std::move(values), mode, comm_world);
}
std::vector<int64_t> Util::all_reduce(std::vector<int64_t> values, std::string_view mode,
                                      std::string_view comm_world) const {
  return reduce(std::move(values), mode, comm_world);
}
std::vector<std::vector<double>> Util::all_gather(const std::vector<double>& values,
                                                  std::string_view comm_world) const {
  return gather(values, comm_world);
}
std::vector<std::vector<int64_t>> Util::all_gather(const std::vector<int64_t>& values,
                                                   std::string_view comm_world) const {
  return gather(values, comm_world);
}
std::vector<double> Util::all_gather(double value, std::string_view comm_world) const {
  return firsts(gather(std::vector{value}, comm_world));
}
std::vector<int64_t> Util::all_gather(int64_t value, std::string_view comm_world) const {
  return firsts(gather(std::vector{value}, comm_world));
}

void Util::barrier(std::string_view comm_world) const {
  if (comm_world == "worker") return job_.barrier();
  group("barrier", comm_world).barrier();
}

std::vector<std::string> Util::get_file_shard(const std::vector<std::string>& files) const {
  const auto [index, num] = job_.place();
  return fleet::get_file_shard(files, index, num);
}

void Util::print_on_rank(std::string_view message, int rank) const {
  const auto [index, num] = job_.place();
  check_arg(rank >= 0 && rank < num, "print_on_rank: there is no worker ", rank, " of ", num);
  if (index == rank) std::cout << message << std::endl;
}

}  // namespace fleetx::fleet
