// A group of ranks that a kernel computes with. Its size and the place of this rank in it are known
// when the kernel is prepared, without peers; its communicator only once the plan is bound:
//
//   explicit Sum(Prepare& p) : group_(p.group(p.attr<std::string>("group"))) {}
//   void bind(const comm::Groups& groups) override { group_.bind(groups); }
//   void run(const Run& r) override { group_->all_reduce(...); }
#pragma once

#include <string>
#include <string_view>

#include "fleetx/comm/groups.h"

namespace fleetx::kernel {

class Group {
 public:
  Group(std::string op, std::string name, int rank, int size)
      : op_(std::move(op)), name_(std::move(name)), rank_(rank), size_(size) {}

  const std::string& name() const { return name_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& op() const { return op_; }  // describe(op), for errors

  // kInvalidArgument where there is no such group, or its size or this rank's place in it is not
  // what the kernel was prepared for.
  void bind(const comm::Groups& groups);
  bool bound() const { return communicator_ != nullptr; }
  comm::Communicator* operator->() const { return communicator_; }
  comm::Communicator& operator*() const { return *communicator_; }
  std::string_view backend() const { return bound() ? communicator_->backend() : ""; }

 private:
  std::string op_, name_;
  int rank_, size_;
  comm::Communicator* communicator_ = nullptr;
};

}  // namespace fleetx::kernel
