// The servers of a job as the ops of a worker see them: kernel::Servers over a ps::Client.
//
// Where the next batch is known (expect_rows), its rows are asked for early: in async mode at once,
// so they travel while this batch computes and miss its update; in the other modes behind this
// step's pushes, so the servers send what they would send later, without another round trip. In
// async mode dense values also arrive one step later then, and the last batch waits for them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleetx/fleet/geo_table.h"
#include "fleetx/kernel/servers.h"
#include "fleetx/ps/client.h"

namespace fleetx::fleet {

class WorkerServers final : public kernel::Servers {
 public:
  struct Options {
    bool gives_first_values = false;  // the first worker
    // half_async: a step ends when the servers have applied its gradients.
    bool waits_for_pushes = false;
    // geo: how this worker trains its own rows, by table. The servers add up what it has learned.
    std::map<std::string, ps::UpdateRulePtr> own_rules{};
  };
  WorkerServers(ps::JobSpec job, Options options);

  // Waits for the servers. Before it, start_with() leaves values as they are and all other calls
  // are errors.
  void connect(ps::ClientOptions options);
  bool connected() const { return client_ != nullptr; }
  ps::Client& client();
  const ps::JobSpec& job() const { return job_; }
  // Waits until the servers have all gradients of this worker, then says goodbye.
  void leave();

  int parameter(std::string_view name) override;
  int table(std::string_view name) override;
  void pull_rows(std::span<const Lookup> lookups, bool make) override;
  void expect_rows(std::span<const Lookup> lookups, bool make) override;
  void expect_no_more() override;
  void push(std::span<const Gradient> dense, std::span<const RowGradient> rows) override;
  void count(const Uses& uses) override;
  void pull(std::span<const Value> values) override;
  void start_with(std::span<const Value> values) override;
  void exchange(std::span<const Exchange> values) override;

 private:
  // A dense parameter: its table and its place there.
  struct Place {
    size_t table, index;
    int64_t count;
  };
  // Rows of one table in one step.
  struct Pulled {
    std::vector<int64_t> given;  // ids of all lookups
    std::shared_ptr<const ps::IdBatch> ids;
    std::vector<float> rows;  // of the distinct ones
    ps::Ticket ticket;
  };
  // Those of one batch, by table; without ids where the batch has no lookup.
  struct PulledBatch {
    std::vector<Pulled> tables;
    bool make = true, sent = false;
  };
  // Dense values that travel while a step computes.
  struct LateValues {
    std::vector<std::vector<float>> values;  // by parameter
    std::vector<ps::Ticket> tickets;         // none: there is nothing
  };

  const Place& place(int parameter) const { return places_[static_cast<size_t>(parameter)]; }
  // A step may compute with values that miss the update of the step before.
  bool may_be_late() const;
  void check_ids(std::span<const Lookup> lookups) const;
  PulledBatch batch_of(std::span<const Lookup> lookups, bool make);
  void send(PulledBatch& batch);
  void send_expected();
  // The batch with these ids, which may be on its way already; waits for it.
  void take_batch(PulledBatch wanted);
  void pull_late(std::span<const Value> values);
  std::vector<ps::Ticket> start_pull(std::span<const Value> values);
  static void wait_for(std::vector<ps::Ticket>& tickets);
  void push_rows(const RowGradient& gradient);
  // Its rows times its scale, until the next call.
  const float* scaled(const RowGradient& gradient);
  void push_uses();
  // Geo: of rows that this worker trains.
  void pull_own(std::span<const Lookup> lookups, bool make);
  void bring(size_t table, std::span<const int64_t> ids, bool make);
  void update_own(const RowGradient& gradient);
  void exchange_rows();
  // Pointers by table, in the order of its parameters. Every parameter of a table must be there.
  template <class P, class Values, class Get>
  std::vector<std::vector<P>> by_table(const Values& values, Get get) const;

  ps::JobSpec job_;
  Options options_;
  std::vector<Place> places_;
  std::map<std::string, int, std::less<>> parameters_, tables_;
  std::unique_ptr<ps::Client> client_;
  PulledBatch pulled_;                // of this step
  std::deque<PulledBatch> expected_;  // of steps to come
  std::vector<PulledBatch> spare_;    // memory of others; answers may be on their way into it
  LateValues late_;
  std::vector<ps::Ticket> pushes_;          // of this step
  std::vector<std::vector<float>> scaled_;  // by parameter: what travels in the gradient's place
  std::vector<float> scaled_rows_;
  // By table: counted since the last push.
  struct Counted {
    std::vector<int64_t> ids;
    std::vector<float> shows, clicks;
  };
  std::vector<Counted> counted_;
  std::vector<std::unique_ptr<GeoTable>> own_;  // by table; empty: the servers train them
};

}  // namespace fleetx::fleet
