// What all servers and workers of a job know about its tables and what is computed with them. Every
// process makes it from the same program; when a worker connects, its text is compared with the
// server's, so that processes which run different programs are told.
//
//   JobSpec job{.workers = 4, .servers = 2, .mode = Mode::kSync};
//   job.dense.push_back({.name = "dense", .params = {{"fc_0.w_0", {270, 400}, adam},
//                                                   {"fc_0.b_0", {400}, adam}}});
//   job.sparse.push_back({.name = "embedding", .dim = 10, .rule = adam, .initializer = {...}});
//
// Tables are named by their place in these lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleetx/ps/initializer.h"
#include "fleetx/ps/row_life.h"
#include "fleetx/ps/slicing.h"
#include "fleetx/ps/update.h"

namespace fleetx::ps {

enum class Mode : uint8_t {
  // The pushes of a step are averaged over the workers, in their order, and applied once; a pull
  // after the n-th push of this worker waits until the n-th pushes of all workers are applied.
  kSync,
  // A push is applied when it comes. Also half-async, and geo with add_rule(): they differ in what
  // workers do.
  kAsync,
};

// Parameters that are pulled and pushed together. Several tables let a worker push one while it
// computes another.
struct DenseParam {
  std::string name;
  Shape shape;
  UpdateRulePtr rule{};
};
struct DenseSpec {
  std::string name;
  std::vector<DenseParam> params;
};

// Rows of `dim` values by 64-bit ids, made on first use.
struct SparseSpec {
  std::string name;
  int64_t dim = 0;
  UpdateRulePtr rule{};
  Initializer initializer{};
  // Admission: a row is made at its `min_count`-th push (1: at its first pull) and then with this
  // probability, decided by the id. Until then it is pulled as zeros and its gradients are dropped.
  int64_t min_count = 1;
  double probability = 1;
  std::optional<RowLife> life{};  // statistics of use, which every row has then
};

// What a pull does about rows that do not exist: training makes them, inference reads zeros.
enum class Absent : uint8_t { kMake, kZero };

struct JobSpec {
  int workers = 1, servers = 1;
  Mode mode = Mode::kAsync;
  // kAsync: how many pushes a worker may be ahead of the slowest one when it pulls; -1: any number.
  int staleness = -1;
  // kAsync: DC-ASGD. A worker's dense gradient g was computed at values b that others have changed
  // since, to w: the servers, which keep b for each worker, apply g + g * g * (w - b).
  bool delay_compensated = false;
  Slicing slicing{};
  std::vector<DenseSpec> dense{};
  std::vector<SparseSpec> sparse{};
  std::string computed{};  // how workers compute the loss: lines, the same for all processes

  void check() const;  // kInvalidArgument names what is wrong
  std::string text() const;
  uint64_t fingerprint() const;  // of the text

  // The blocks of a dense table. Counted over the tables: round robin goes on from one to the next.
  std::vector<std::vector<Block>> blocks() const;
};

// The first line in which the texts of two jobs differ, for an error.
std::string first_difference(const std::string& server, const std::string& worker);

}  // namespace fleetx::ps
