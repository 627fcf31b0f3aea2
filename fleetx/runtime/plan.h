// A Plan is a PlannedProgram with memory: parameters are in their layouts, pointers are set.
// Running it makes no decision and allocates nothing. Made by bind (bind.h), owned by the executor.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fleetx/runtime/plan_memory.h"
#include "fleetx/runtime/planned_program.h"
#include "fleetx/tensor/tensor.h"

namespace fleetx::runtime {

class Plan {
 public:
  // ---- running ----
  int feed_index(std::string_view name) const;  // -1 where the plan does not read it
  // Row-major memory that stays valid until the next run has ended. Types were checked when the
  // plan was made.
  void set_feed(int index, const void* data);
  // Runs all steps whose guards are true, then copies what is fetched into fetched(i).
  void run();
  // The same, with a look at every step: time for profile and trace, values for NaN and Inf.
  struct Observer {
    virtual ~Observer() = default;
    virtual void after(const Plan& plan, const Step& step, size_t index, uint64_t start_ns,
                       uint64_t end_ns) = 0;
  };
  void run(Observer& observer);
  // Which of the planned fetches run() copies, and in which order; false: one of them was not
  // planned, and nothing is changed. At first all of them.
  bool select_fetches(const ir::Names& names);
  // Of the selected ones. Valid after run; reused by the next run unless someone still holds it.
  const Tensor& fetched(size_t i) const { return fetched_[selected_[i]]; }

  // ---- looking ----
  const PlannedProgram& planned() const { return planned_; }
  const ir::Program& program() const { return planned_.program; }
  const std::vector<Step>& steps() const { return planned_.steps; }
  const std::vector<Value>& values() const { return planned_.values; }
  const std::vector<Storage>& storages() const { return planned_.storages; }
  const std::vector<PlannedBucket>& buckets() const { return planned_.buckets; }
  const std::vector<passes::Report>& passes() const { return planned_.passes; }
  size_t arena_bytes() const { return planned_.arena_bytes; }
  size_t peak_bytes() const { return planned_.peak_bytes(); }
  double flops() const { return planned_.flops(); }
  double seconds_to_make() const { return planned_.seconds_to_make(); }
  std::string table() const { return planned_.table(); }
  // Memory that this plan alone takes: it is free when the plan is dropped.
  size_t own_bytes() const;
  const void* address(int value) const;
  // Of inputs, outputs and scratch of a step.
  std::span<void* const> pointers(size_t step) const;

 private:
  friend class Binder;

  // A step as it is run.
  struct Call {
    kernel::Kernel* kernel;
    std::span<void* const> pointers;  // in pointers_
    void* const* guard;               // its pointer, behind those; null: always runs

    bool is_skipped() const { return guard != nullptr && !*static_cast<const bool*>(*guard); }
  };

  void begin_run();
  void give_up();  // a run that failed
  [[noreturn]] void rethrow_with_step(size_t index, const Error& e) const;
  void* address_of(const Storage& storage) const;
  void copy_fetches();

  // Kernels may have calls under way in the groups, on the memory here: planned_, which holds them,
  // is destroyed first.
  std::shared_ptr<const comm::Groups> groups_;
  std::shared_ptr<PlanMemory> memory_;
  std::vector<std::shared_ptr<void>> bucket_memory_;
  char* arena_ = nullptr;  // where pointers_ lead; memory_ may have moved it since
  // Tensors of the scope: they stay alive as long as the plan points at them.
  std::map<std::string, Tensor> held_;
  std::vector<void*> pointers_;                 // of all steps
  std::vector<size_t> arena_uses_;              // places in pointers_
  std::vector<std::vector<size_t>> feed_uses_;  // per feed: places in pointers_
  std::vector<const void*> feed_data_;
  std::vector<Tensor> fetched_;   // per planned fetch
  std::vector<size_t> selected_;  // of them
  ir::Names selected_names_;
  PlannedProgram planned_;
  std::vector<Call> calls_;  // per step
};

}  // namespace fleetx::runtime
