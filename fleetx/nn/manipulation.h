// Changing the shape, order and choice of elements.
#pragma once

#include "fleetx/nn/call.h"

namespace fleetx::nn {

// 0 keeps the dimension of x, one -1 is what is left.
Var reshape(const Var& x, ir::Ints shape, Where where = Where::current());
// To a matrix: dimensions before `axis`, and the rest.
Var flatten(const Var& x, int axis = 1, Where where = Where::current());
// Dimensions start to stop become one.
Var flatten_range(const Var& x, int start, int stop, Where where = Where::current());
Var transpose(const Var& x, ir::Ints perm, Where where = Where::current());
Var squeeze(const Var& x, ir::Ints axes = {}, Where where = Where::current());
Var unsqueeze(const Var& x, ir::Ints axes, Where where = Where::current());
Var expand(const Var& x, ir::Ints shape, Where where = Where::current());  // -1 keeps
Var tile(const Var& x, ir::Ints repeats, Where where = Where::current());

Var concat(const std::vector<Var>& xs, int axis = 0, Where where = Where::current());
Var stack(const std::vector<Var>& xs, int axis = 0, Where where = Where::current());
std::vector<Var> unstack(const Var& x, int axis = 0, Where where = Where::current());
std::vector<Var> split(const Var& x, int parts, int axis = 0, Where where = Where::current());
std::vector<Var> split(const Var& x, ir::Ints sections, int axis = 0,
                       Where where = Where::current());

struct SliceOptions {
  ir::Ints axes = {};
  ir::Ints starts = {};
  ir::Ints ends = {};   // exclusive; beyond the end means the end
  ir::Ints steps = {};  // empty: 1
};
Var slice(const Var& x, SliceOptions o, Where where = Where::current());

Var gather(const Var& x, const Var& index, int axis = 0, Where where = Where::current());
// index [..., n] holds coordinates of the first n dimensions of x.
Var gather_nd(const Var& x, const Var& index, Where where = Where::current());
struct ScatterOptions {
  bool overwrite = true;  // false: rows of equal index add up
};
Var scatter(const Var& x, const Var& index, const Var& updates, ScatterOptions o = {},
            Where where = Where::current());

struct PadOptions {
  ir::Ints paddings = {};  // before and after, for every dimension
  double value = 0.0;
  std::string mode = "constant";  // "reflect", "edge"
};
Var pad(const Var& x, PadOptions o, Where where = Where::current());

Var where(const Var& condition, const Var& x, const Var& y, Where where = Where::current());
// `value` where mask is true, x elsewhere.
Var masked_fill(const Var& x, const Var& mask, double value, Where where = Where::current());
Var flip(const Var& x, ir::Ints axes, Where where = Where::current());
Var shape_of(const Var& x, Where where = Where::current());  // i64 [rank], known when it runs
Var one_hot(const Var& x, int depth, Where where = Where::current());
Var argmax(const Var& x, int axis = -1, Where where = Where::current());
Var argmin(const Var& x, int axis = -1, Where where = Where::current());

struct Ranked {
  Var values, indices;
};
Ranked top_k(const Var& x, int k, int axis = -1, Where where = Where::current());
struct ArgsortOptions {
  int axis = -1;
  bool descending = false;
};
Ranked argsort(const Var& x, ArgsortOptions o = {}, Where where = Where::current());

}  // namespace fleetx::nn
