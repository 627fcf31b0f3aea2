// Variables that live from step to step, by name: parameters, optimizer state, statistics. Several
// programs (startup, main, test) work on one scope. Tensors in a scope may be in a blocked layout
// that the kernels chose; what goes in and out through set() and get() is row-major. Not
// thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fleetx/tensor/tensor.h"

namespace fleetx::runtime {

class Scope {
 public:
  Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  bool has(std::string_view name) const { return tensors_.contains(name); }
  std::vector<std::string> names() const;
  // A row-major copy. An unknown name is an error that suggests near ones.
  Tensor get(std::string_view name) const;
  // Copies `value` in. Where the variable exists with the same type, its memory and layout stay.
  void set(const std::string& name, const Tensor& value);
  void erase(std::string_view name);

  // The tensor itself, in the layout it has; null where there is none. For plans and checkpoints.
  const Tensor* find(std::string_view name) const;
  // Replaces memory and layout; plans bound to the old memory are made anew.
  void replace(const std::string& name, Tensor tensor);

  uint64_t id() const { return id_; }
  // Changes whenever memory or layout of a variable changes (not its values).
  uint64_t generation() const { return generation_; }
  size_t bytes() const;

 private:
  uint64_t id_;
  uint64_t generation_ = 0;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace fleetx::runtime
