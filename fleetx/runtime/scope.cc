#include "fleetx/runtime/scope.h"

#include <atomic>

#include "fleetx/base/names.h"

namespace fleetx::runtime {
namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> id{0};
  return ++id;
}

}  // namespace

Scope::Scope() : id_(next_id()) {}

std::vector<std::string> Scope::names() const {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : tensors_) out.push_back(name);
  return out;
}

const Tensor* Scope::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

Tensor Scope::get(std::string_view name) const {
  const Tensor* tensor = find(name);
  check_arg(tensor != nullptr, "the scope has no variable '", name, "'",
            did_you_mean(name, names()));
  return tensor->layout().is_plain() ? tensor->clone() : tensor->plain();
}

void Scope::set(const std::string& name, const Tensor& value) {
  const auto it = tensors_.find(name);
  if (it == tensors_.end() || it->second.dtype() != value.dtype() ||
      it->second.shape() != value.shape()) {
    replace(name, value.layout().is_plain() ? value.clone() : value.plain());
    return;
  }
  convert_layout(value.dtype(), value.shape(), value.raw(), value.layout(), it->second.raw(),
                 it->second.layout());
}

void Scope::erase(std::string_view name) {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return;
  tensors_.erase(it);
  ++generation_;
}

void Scope::replace(const std::string& name, Tensor tensor) {
  tensors_.insert_or_assign(name, std::move(tensor));
  ++generation_;
}

size_t Scope::bytes() const {
  size_t sum = 0;
  for (const auto& [name, tensor] : tensors_) sum += tensor.bytes();
  return sum;
}

}  // namespace fleetx::runtime
