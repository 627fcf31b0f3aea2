#include "fleetx/train/placed_state.h"

#include <cstring>

#include "fleetx/base/error.h"
#include "fleetx/base/half.h"
#include "fleetx/ir/owned.h"

namespace fleetx::train {
namespace {

using Resize = ir::Placement::Resize;

struct Axis {
  comm::Communicator* group;
  int rank, size;
};

Axis axis_of(const std::string& name, const comm::Groups& groups) {
  comm::Communicator* group = groups.find(name);
  return group == nullptr ? Axis{nullptr, 0, 1} : Axis{group, group->rank(), group->size()};
}

Shape stacked(const Shape& shape, int64_t n) {
  std::vector<int64_t> dims{n};
  dims.insert(dims.end(), shape.begin(), shape.end());
  return Shape(std::move(dims));
}

// Part `index` of n equal parts along a dimension, copied from the whole or into it.
enum class Copy { kOut, kIn };
void copy_part(const Tensor& whole, const Tensor& part, int dim, int index, Copy direction) {
  const int64_t outer = whole.shape().numel(0, dim);
  const size_t row = part.bytes() / static_cast<size_t>(outer);
  const size_t stride = whole.bytes() / static_cast<size_t>(outer);
  for (int64_t o = 0; o < outer; ++o) {
    char* in_whole = static_cast<char*>(whole.raw()) + static_cast<size_t>(o) * stride +
                     static_cast<size_t>(index) * row;
    char* in_part = static_cast<char*>(part.raw()) + static_cast<size_t>(o) * row;
    if (direction == Copy::kOut)
      std::memcpy(in_part, in_whole, row);
    else
      std::memcpy(in_whole, in_part, row);
  }
}

Tensor part_of(const Tensor& whole, const Shape& shape, int dim, int index) {
  Tensor part(whole.dtype(), shape);
  copy_part(whole, part, dim, index, Copy::kOut);
  return part;
}

// Sum of all values of a stack, times `factor`; summed in double, in the order of the ranks.
template <class T>
Tensor reduced_as(const Tensor& stack, const Shape& shape, double factor) {
  Tensor out(stack.dtype(), shape);
  const auto n = static_cast<size_t>(shape.numel());
  const auto ranks = static_cast<size_t>(stack.shape()[0]);
  const T* in = static_cast<const T*>(stack.raw());
  T* result = static_cast<T*>(out.raw());
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>) {
      T sum = 0;
      for (size_t r = 0; r < ranks; ++r) sum = static_cast<T>(sum + in[r * n + i]);
      result[i] = factor == 1 ? sum : static_cast<T>(static_cast<double>(sum) * factor);
    } else {
      double sum = 0;
      for (size_t r = 0; r < ranks; ++r) sum += static_cast<double>(in[r * n + i]);
      result[i] = static_cast<T>(static_cast<float>(sum * factor));
      if constexpr (std::is_same_v<T, double>) result[i] = sum * factor;
    }
  }
  return out;
}

Tensor reduced(const ir::VarInfo& var, const Tensor& stack, double factor) {
  switch (stack.dtype()) {
    case DType::kF32: return reduced_as<float>(stack, var.type.shape, factor);
    case DType::kF64: return reduced_as<double>(stack, var.type.shape, factor);
    case DType::kF16: return reduced_as<Half>(stack, var.type.shape, factor);
    case DType::kBF16: return reduced_as<BFloat16>(stack, var.type.shape, factor);
    case DType::kI32: return reduced_as<int32_t>(stack, var.type.shape, factor);
    case DType::kI64: return reduced_as<int64_t>(stack, var.type.shape, factor);
    default: break;
  }
  fail(Error::Kind::kInvalidArgument,
       str("'", var.name, "' is ", var.placement, " and ", stack.dtype(),
           ": values of that type cannot be added up for another number of ranks"));
}

// What one of `axis.size` ranks gets of a sum. Whole numbers cannot be divided: rank 0 has them.
Tensor share_of_sum(const ir::VarInfo& var, const Tensor& stack, const Axis& axis) {
  if (is_float(var.type.dtype)) return reduced(var, stack, 1.0 / axis.size);
  return axis.rank == 0 ? reduced(var, stack, 1) : Tensor(var.type.dtype, var.type.shape);
}

// From the rank that has it to rank 0.
Tensor owned_to_whole(const ir::VarInfo& var, const ir::Owner& owner, const Tensor& own,
                      const Shape& shape, const Axis& axis) {
  if (axis.rank == owner.rank) {
    check_arg(own.defined(), "'", var.name, "' belongs to rank ", owner.rank, " of '", owner.group,
              "' and has no value there; was the startup program run?");
    if (owner.rank != 0)
      axis.group->send(own.raw(), static_cast<int64_t>(own.bytes()), DType::kU8, 0);
    return own;
  }
  if (axis.rank != 0) return {};
  check_arg(owner.rank < axis.size, "'", var.name, "' belongs to rank ", owner.rank, " of '",
            owner.group, "', which has ", axis.size, " ranks here");
  Tensor whole(var.type.dtype, shape);
  axis.group->recv(whole.raw(), static_cast<int64_t>(whole.bytes()), DType::kU8, owner.rank);
  return whole;
}

// The values of all ranks of the axis, on its rank 0.
Tensor joined(const ir::Placement& p, const Tensor& own, const Axis& axis) {
  const auto bytes = static_cast<int64_t>(own.bytes());
  if (axis.rank != 0) {
    axis.group->send(own.raw(), bytes, DType::kU8, 0);
    return own;
  }
  const Shape shape =
      p.is_sharded() ? ir::whole_of(own.shape(), p, axis.size) : stacked(own.shape(), axis.size);
  const int dim = p.is_sharded() ? p.dim : 0;
  Tensor whole(own.dtype(), shape), part(own.dtype(), own.shape());
  copy_part(whole, own, dim, 0, Copy::kIn);
  for (int rank = 1; rank < axis.size; ++rank) {
    axis.group->recv(part.raw(), bytes, DType::kU8, rank);
    copy_part(whole, part, dim, rank, Copy::kIn);
  }
  return whole;
}

}  // namespace

Tensor to_whole(const ir::VarInfo& var, const Tensor& own, const comm::Groups& groups) {
  const ir::Placement& p = var.placement;
  if (p.is_replicated() || p.is_transient()) return own;
  const auto owner = ir::owner_of(var);
  if (!owner) return joined(p, own, axis_of(p.axis, groups));
  const Axis among = axis_of(owner->group, groups);
  if (p.is_owned()) return owned_to_whole(var, *owner, own, var.type.shape, among);
  // A part: its owners join it, and the first of them sends it on.
  const Axis parts = axis_of(p.axis, groups);
  const bool is_here = among.rank == owner->rank;
  check_arg(!is_here || own.defined(), "'", var.name, "' belongs to rank ", owner->rank, " of '",
            owner->group, "' and has no value there; was the startup program run?");
  const Tensor whole = is_here ? joined(p, own, parts) : Tensor();
  if (parts.rank != 0) return whole;
  return owned_to_whole(var, *owner, whole, ir::whole_of(var.type.shape, p, parts.size), among);
}

Tensor from_whole(const ir::VarInfo& var, const Tensor& whole, std::optional<Resize> saved,
                  const comm::Groups& groups, const std::string& source) {
  const ir::Placement& p = var.placement;
  const Shape& shape = var.type.shape;
  const Axis axis = axis_of(p.axis, groups);
  const auto owner = ir::owner_of(var);
  const bool is_here = !owner || axis_of(owner->group, groups).rank == owner->rank;
  const Shape expected = saved            ? stacked(shape, whole.shape()[0])
                         : p.is_sharded() ? ir::whole_of(shape, p, axis.size)
                                          : shape;
  check_arg(whole.dtype() == var.type.dtype && whole.shape() == expected, source, ": variable '",
            var.name, "' is ", whole.dtype(), whole.shape(), ", the program has ", var.type,
            p.is_replicated() ? "" : str(" ", p), "; expected ", var.type.dtype, expected);
  if (p.is_sharded()) {
    check_arg(!saved, source, ": variable '", var.name, "' was saved per rank, the program has it ",
              p);
    if (!is_here) return {};
    return part_of(whole, ir::shard_of(whole.shape(), p, axis.size, var.name), p.dim, axis.rank);
  }
  if (!is_here) return {};
  if (!saved && !p.is_per_rank()) return whole;
  // One value is that of a single rank.
  const Tensor stack = saved ? whole : Tensor::view(whole.dtype(), stacked(shape, 1), whole.raw());
  const int64_t ranks = stack.shape()[0];
  if (p.is_per_rank() && saved && ranks == axis.size) return part_of(stack, shape, 0, axis.rank);
  switch (p.is_per_rank() ? p.resize : *saved) {
    case Resize::kAverage: return reduced(var, stack, 1.0 / static_cast<double>(ranks));
    case Resize::kSum:
      return p.is_owned() ? reduced(var, stack, 1) : share_of_sum(var, stack, axis);
    case Resize::kReset: return {};
  }
  return {};
}

}  // namespace fleetx::train
