// What the ops of a worker ask of the parameter servers of its job. fleet/ implements it over ps/;
// ops know neither addresses nor modes: whether a push waits for the other workers is the business
// of who implements it. Used by one thread at a time.
//
//   explicit PullKernel(Prepare& p) ...        there are no servers yet
//   void bind(const comm::Groups&) override {
//     servers_ = servers_of(op);
//     table_ = servers_->table("t");
//   }
//   void run(const Run& r) override { servers_->pull_rows(...); }
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace fleetx::kernel {

class Servers {
 public:
  virtual ~Servers() = default;

  // Handles, asked for once. A name that the servers do not keep is kInvalidArgument.
  virtual int parameter(std::string_view name) = 0;  // dense, as many elements as the variable has
  virtual int table(std::string_view name) = 0;      // rows by id

  // `rows` has room for `count` rows. Ids may stand there several times.
  struct Lookup {
    int table;
    const int64_t* ids;
    int64_t count;
    float* rows;
  };
  // make: a row that is not there yet is made by the table's initializer; else it is zeros.
  virtual void pull_rows(std::span<const Lookup> lookups, bool make) = 0;
  // Told ahead, batch by batch: the lookups of a pull_rows to come, whose `rows` are null yet.
  // Their rows may be on their way while earlier batches compute. Another pull_rows may come first.
  virtual void expect_rows(std::span<const Lookup>, bool /*make*/) {}
  virtual void expect_no_more() {}  // those that were told and have not come will not come

  struct Gradient {
    int parameter;
    const float* values;
    float lr, scale;  // the servers apply scale * values with this learning rate
  };
  // An id that stands there several times has the sum of its rows.
  struct RowGradient {
    int table;
    const int64_t* ids;
    int64_t count;
    const float* values;
    float lr, scale;
  };
  // All gradients of one step, in one call. May return before they are applied.
  virtual void push(std::span<const Gradient> dense, std::span<const RowGradient> rows) = 0;

  // Of a table with statistics: ids[i] stood in an example that was shown and clicked so often.
  // Reaches the servers with the next push.
  struct Uses {
    int table;
    std::span<const int64_t> ids;
    std::span<const float> shows, clicks;
  };
  virtual void count(const Uses& uses) = 0;

  struct Value {
    int parameter;
    float* values;
  };
  // The values that the next step computes with.
  virtual void pull(std::span<const Value> values) = 0;
  // Before the first step: the servers take those of the first worker, unless they have values
  // (loaded, or trained already); afterwards all workers have what the servers have.
  virtual void start_with(std::span<const Value> values) = 0;

  // Geo: what the worker has learned since the last exchange, value - base, reaches the servers as
  // the share of one worker, and what the others have learned comes back; both are changed.
  struct Exchange {
    int parameter;
    float *value, *base;
  };
  virtual void exchange(std::span<const Exchange> values) = 0;
};

// Those of this thread, else those of the process; null: there are none.
std::shared_ptr<Servers> current_servers();
void set_process_servers(std::shared_ptr<Servers> servers);
// The same, but none is kInvalidArgument that begins with `op`, describe(op).
std::shared_ptr<Servers> servers_of(std::string_view op);

// For tests whose workers are threads: inside, these are the servers of the calling thread.
class ThreadServers {
 public:
  explicit ThreadServers(std::shared_ptr<Servers> servers);
  ThreadServers(const ThreadServers&) = delete;
  ThreadServers& operator=(const ThreadServers&) = delete;
  ~ThreadServers();
};

}  // namespace fleetx::kernel
