// Measured ops, taken together by kind, implementation and class of shape: those whose arithmetic
// and whose traffic in memory are alike within a factor of about 1.2 are one class.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fleetx/predict/machine.h"
#include "fleetx/runtime/planned_program.h"

namespace fleetx::predict {

// The type that a step computes in: that of its first floating-point argument.
DType dtype_of(const runtime::PlannedProgram& plan, const runtime::Step& step);

class Samples {
 public:
  // Of steps that ran on so many cores of a host whose others were busy likewise.
  explicit Samples(int cores = kAllCores) : cores_(cores) {}
  // A step that has run. Calls to other ranks are no ops of this kind and are left out.
  void add(const runtime::PlannedProgram& plan, const runtime::Step& step, double seconds);
  // One for each class: the mean of the work of its ops, and of their times, each of which is the
  // median of all that were measured. (The median over a class would lose the slow ones of it.)
  std::vector<OpSample> take() const;

 private:
  struct Measured {
    double flops = 0, bytes = 0;
    std::vector<double> seconds = {};
  };
  using Class = std::map<std::pair<uint64_t, std::ptrdiff_t>, Measured>;  // program, number of step
  int cores_;
  std::map<std::tuple<std::string, std::string, DType, int, int>, Class> classes_;
};

}  // namespace fleetx::predict
