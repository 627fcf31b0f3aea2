#include "fleetx/ps/table_service.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "fleetx/base/simd.h"
#include "fleetx/ps/id_batch.h"

namespace fleetx::ps {

using wire::Header;
using wire::Kind;

namespace {

constexpr uint64_t kMaxIds = uint64_t{1} << 28;  // of one request
// Steps that a worker may be ahead of the slowest one; its pushes are kept until then.
constexpr size_t kMaxPending = 64;

void add(float* sum, const float* x, int64_t n) {
  vectorized([=] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
  });
}

void scale(float* x, float factor, int64_t n) {
  vectorized([=] {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) x[i] *= factor;
  });
}

}  // namespace

void reply(Peer& peer, const Header& request, Payload payload, uint64_t count) {
  const Header header{
      .kind = Kind::kReply, .request = request.request, .count = count, .bytes = payload.size()};
  peer.send(header, std::move(payload));
}

void refuse(Peer& peer, const Header& request, Error::Kind kind, const std::string& why) {
  Payload payload;
  payload.assign(why);
  const Header header{.kind = Kind::kRefused,
                      .request = request.request,
                      .count = static_cast<uint64_t>(kind),
                      .bytes = payload.size()};
  peer.send(header, std::move(payload));
}

TableService::TableService(const JobSpec& job, int server, int threads, PayloadPool& pool,
                           const MemoryLimits& limits)
    : job_(job), pool_(pool) {
  const auto blocks = job.blocks();
  for (size_t t = 0; t < job.dense.size(); ++t)
    dense_.push_back(std::make_unique<Dense>(job.dense[t], blocks[t], server));
  limit_memory(limits);
  for (size_t t = 0; t < job.sparse.size(); ++t)
    sparse_.push_back(std::make_unique<SparseTable>(
        job.sparse[t], threads,
        TableMemory{.budget = budget_.get(),
                    .disk = disk_.get(),
                    .table = static_cast<uint32_t>(t),
                    .tables = static_cast<uint32_t>(job.sparse.size())}));
  const auto workers = static_cast<size_t>(job.workers);
  for (const auto& table : dense_) table->pulled.resize(workers);
  for (size_t t = 0; t < dense_.size() + sparse_.size(); ++t) {
    states_.push_back(std::make_unique<State>());
    states_.back()->pending.resize(workers);
    states_.back()->pushed.resize(workers);
  }
  left_.resize(workers);
  lost_.resize(workers);
  meeting_.resize(workers);
}

void TableService::limit_memory(const MemoryLimits& limits) {
  check_arg(limits.bytes >= 0, "a memory budget of ", limits.bytes, " bytes");
  check_arg(limits.disk.empty() || limits.bytes > 0, "a disk for tables (", limits.disk,
            ") is for rows beyond a memory budget; give one, too (--server_memory)");
  if (limits.bytes == 0) return;
  int64_t dense = 0;
  for (const auto& table : dense_) dense += table->values.bytes();
  const bool on_disk = !limits.disk.empty() && !job_.sparse.empty();
  budget_ = std::make_unique<MemoryBudget>(limits.bytes);
  fixed_ = std::make_unique<MemoryBudget::Share>(*budget_, 0);
  check_arg(fixed_->take(dense), "a memory budget of ", limits.bytes,
            " bytes (--server_memory) is too small: the parameters that are no tables, and their "
            "states, have ",
            dense, " bytes on this server");
  if (on_disk) disk_ = std::make_unique<DiskRows>(limits.disk);
}

bool TableService::is_dense(const Header& h) const {
  return h.kind == Kind::kPullDense || h.kind == Kind::kPushDense || h.kind == Kind::kSetDense;
}

TableService::State& TableService::state_of(const Header& h) {
  return *states_[h.table + (is_dense(h) ? 0 : dense_.size())];
}

uint64_t TableService::payload_bytes(const Header& h) const {
  const size_t tables = is_dense(h) ? dense_.size() : sparse_.size();
  check_arg(h.table < tables, to_string(h.kind), ": there is no table ", h.table, " but ", tables);
  if (h.kind == Kind::kPullDense) return 0;
  if (is_dense(h)) return static_cast<uint64_t>(dense_[h.table]->values.size()) * sizeof(float);
  check_arg(h.count <= kMaxIds, to_string(h.kind), ": ", h.count, " ids; at most ", kMaxIds);
  check_arg(h.kind != Kind::kPushUses || job_.sparse[h.table].life, to_string(h.kind), ": table '",
            job_.sparse[h.table].name, "' has no statistics of its rows");
  const auto row = static_cast<uint64_t>(sparse_[h.table]->dim()) * sizeof(float);
  const uint64_t with_id = h.kind == Kind::kPushSparse ? row
                           : h.kind == Kind::kPushUses ? 2 * sizeof(float)
                                                       : 0;
  const uint64_t whole = h.count * (sizeof(uint64_t) + with_id);
  if ((h.flags & wire::kDeltas) == 0) return whole;
  check_arg(h.bytes >= h.count * (1 + with_id) && h.bytes < whole, to_string(h.kind), ": ", h.count,
            " ids as deltas, in ", h.bytes, " bytes");
  return h.bytes;
}

void TableService::expand_ids(Header& h, Payload& payload) {
  h.flags &= static_cast<uint8_t>(~wire::kDeltas);
  const size_t ids = h.count * sizeof(uint64_t), rest = payload_bytes(h) - ids;
  Payload whole = pool_.take(ids + rest);
  const size_t deltas = wire::decode_deltas(
      payload.text(), {reinterpret_cast<uint64_t*>(whole.data()), static_cast<size_t>(h.count)});
  check_file(deltas + rest == payload.size(), to_string(h.kind), ": ", h.count, " ids in ", deltas,
             " bytes, then ", payload.size() - deltas, " where ", rest, " are expected");
  std::memcpy(whole.data() + ids, payload.data() + deltas, rest);
  pool_.give_back(std::exchange(payload, std::move(whole)));
}

// --- pulls ---------------------------------------------------------------------------------------

// With the state's lock.
bool TableService::ready(const Request& request, const State& state) const {
  const Header& h = request.header;
  const auto worker = static_cast<size_t>(request.worker);
  if (h.kind == Kind::kPullDense) {
    const Dense& table = *dense_[h.table];
    const std::scoped_lock lock(table.mutex);
    if (!table.values.is_set() && table.values.size() > 0) return false;
  }
  if (h.wait == 0) return true;
  // Its own pushes have been applied, each with those of the others.
  if (job_.mode == Mode::kSync) return state.pending[worker].empty();
  const std::scoped_lock lock(members_mutex_);
  for (size_t w = 0; w < left_.size(); ++w)
    if (!left_[w] && lost_[w].empty() && state.pushed[w] < h.wait) return false;
  return true;
}

void TableService::pull(Request request, const Payload& ids) {
  State& state = state_of(request.header);
  {
    const std::scoped_lock lock(state.mutex);
    if (!state.broken.empty())
      return refuse(*request.peer, request.header, Error::Kind::kUnsupported, state.broken);
    if (!ready(request, state)) {
      std::string lost;
      if (job_.mode == Mode::kSync) {
        const std::scoped_lock members(members_mutex_);
        for (const std::string& why : lost_)
          if (!why.empty()) lost = why;
      }
      if (!lost.empty()) return refuse(*request.peer, request.header, Error::Kind::kComm, lost);
      Payload kept;
      kept.assign(ids.text());
      if (state.waiting.empty()) state.waits_since = std::chrono::steady_clock::now();
      state.waiting.push_back({std::move(request), std::move(kept)});
      return;
    }
  }
  answer_pull(request, ids);
}

void TableService::answer_pull(const Request& request, const Payload& ids) {
  const Header& h = request.header;
  State& state = state_of(h);
  if (h.kind == Kind::kPullDense) {
    Dense& table = *dense_[h.table];
    const auto n = static_cast<size_t>(table.values.size());
    Payload values = pool_.take(n * sizeof(float));
    {
      const std::scoped_lock lock(table.mutex);
      table.values.pull({values.floats(), n});
      if (job_.delay_compensated)
        table.pulled[static_cast<size_t>(request.worker)].assign(values.floats(),
                                                                 values.floats() + n);
    }
    state.pulled_items += static_cast<int64_t>(n);
    return reply(*request.peer, h, std::move(values));
  }
  SparseTable& table = *sparse_[h.table];
  Payload rows = pool_.take(h.count * static_cast<size_t>(table.dim()) * sizeof(float));
  try {
    table.pull(ids.ids(h.count), rows.floats(),
               (h.flags & wire::kDoNotMake) != 0 ? Absent::kZero : Absent::kMake);
  } catch (const Error& e) {  // no memory or disk
    return refuse(*request.peer, h, e.kind(), e.what());
  }
  state.pulled_items += static_cast<int64_t>(h.count);
  reply(*request.peer, h, std::move(rows));
}

void TableService::answer_ready(State& state) {
  std::vector<Waiting> now;
  std::string broken;
  {
    const std::scoped_lock lock(state.mutex);
    broken = state.broken;
    if (!broken.empty()) now.swap(state.waiting);
    const auto first =
        std::stable_partition(state.waiting.begin(), state.waiting.end(),
                              [&](const Waiting& w) { return !ready(w.request, state); });
    std::move(first, state.waiting.end(), std::back_inserter(now));
    state.waiting.erase(first, state.waiting.end());
  }
  for (const Waiting& w : now)
    if (broken.empty())
      answer_pull(w.request, w.ids);
    else
      refuse(*w.request.peer, w.request.header, Error::Kind::kUnsupported, broken);
}

void TableService::answer_waiting() {
  for (const auto& state : states_) answer_ready(*state);
}

// --- pushes --------------------------------------------------------------------------------------

void TableService::set_dense(const Request& request, const Payload& values) {
  Dense& table = *dense_[request.header.table];
  {
    const std::scoped_lock lock(table.mutex);
    if (!table.values.is_set())
      table.values.set({values.floats(), static_cast<size_t>(table.values.size())});
  }
  reply(*request.peer, request.header);
  answer_ready(state_of(request.header));
}

void TableService::apply(const Header& h, Payload& payload, size_t worker) {
  if (h.kind == Kind::kPushDense) {
    Dense& table = *dense_[h.table];
    const std::scoped_lock lock(table.mutex);
    const std::span gradients(payload.floats(), static_cast<size_t>(table.values.size()));
    // Nothing pulled: from a server before it was started again.
    if (job_.delay_compensated && !table.pulled[worker].empty())
      table.values.compensate(gradients, table.pulled[worker]);
    table.values.push(gradients, h.lr);
  } else {
    sparse_[h.table]->push(payload.ids(h.count), payload.floats(h.count * sizeof(uint64_t)), h.lr);
  }
}

void TableService::push(const Request& request, Payload payload) {
  const Header& h = request.header;
  if (h.kind == Kind::kPushUses) return push_uses(request, payload);
  State& state = state_of(h);
  const auto worker = static_cast<size_t>(request.worker);
  state.pushed_items +=
      static_cast<int64_t>(is_dense(h) ? payload.size() / sizeof(float) : h.count);
  if (job_.mode == Mode::kAsync) {
    try {
      apply(h, payload, worker);
    } catch (const Error& e) {  // no memory or disk
      return refuse(*request.peer, h, e.kind(), e.what());
    }
    pool_.give_back(std::move(payload));
    {
      const std::scoped_lock lock(state.mutex);
      ++state.pushed[worker];
      ++state.applied;
    }
    reply(*request.peer, h);
    if (job_.staleness >= 0) answer_ready(state);
    return;
  }
  {
    const std::scoped_lock lock(state.mutex);
    if (!state.broken.empty())
      return refuse(*request.peer, h, Error::Kind::kUnsupported, state.broken);
    if (state.pending[worker].size() >= kMaxPending)
      return refuse(*request.peer, h, Error::Kind::kInvalidArgument,
                    str("worker ", worker, " has pushed table '", h.table, "' ", kMaxPending,
                        " times more than another worker; in sync mode every worker pushes every "
                        "table once per step"));
    state.pending[worker].push_back({h, std::move(payload)});
    ++state.pushed[worker];
  }
  reply(*request.peer, h);
  apply_steps(state);
}

// Statistics are sums: they are no part of a step, and wait for nobody.
void TableService::push_uses(const Request& request, const Payload& payload) {
  const Header& h = request.header;
  try {
    sparse_[h.table]->count(payload.ids(h.count), payload.floats(h.count * sizeof(uint64_t)));
  } catch (const Error& e) {  // no memory or disk
    return refuse(*request.peer, h, e.kind(), e.what());
  }
  reply(*request.peer, h);
}

// Applies all steps for which every worker that has not left has pushed.
void TableService::apply_steps(State& state) {
  {
    const std::scoped_lock lock(state.mutex);
    for (;;) {
      std::vector<Push> step;
      {
        const std::scoped_lock members(members_mutex_);
        bool complete = true;
        for (size_t w = 0; w < state.pending.size(); ++w)
          complete = complete && (!is_waited_for(w) || !state.pending[w].empty());
        if (!complete) break;
      }
      for (std::deque<Push>& pending : state.pending) {
        if (pending.empty()) continue;
        step.push_back(std::move(pending.front()));
        pending.pop_front();
      }
      if (step.empty() || !state.broken.empty()) break;
      try {
        if (step.front().header.kind == Kind::kPushDense)
          apply_dense_step(std::move(step));
        else
          apply_sparse_step(std::move(step));
      } catch (const Error& e) {  // no memory or disk
        state.broken = e.what();
        break;
      }
      ++state.applied;
    }
  }
  answer_ready(state);
}

// The sums go in the order of workers, whoever came first: the same bits in every run.
void TableService::apply_dense_step(std::vector<Push> step) {
  const auto n = static_cast<int64_t>(step.front().payload.size() / sizeof(float));
  float* const sum = step.front().payload.floats();
  for (size_t w = 1; w < step.size(); ++w) add(sum, step[w].payload.floats(), n);
  if (step.size() > 1) scale(sum, 1.0f / static_cast<float>(step.size()), n);
  apply(step.front().header, step.front().payload, 0);
  for (Push& push : step) pool_.give_back(std::move(push.payload));
}

void TableService::apply_sparse_step(std::vector<Push> step) {
  if (step.size() == 1) {
    apply(step.front().header, step.front().payload, 0);
    return pool_.give_back(std::move(step.front().payload));
  }
  SparseTable& table = *sparse_[step.front().header.table];
  std::vector<int64_t> ids;
  for (const Push& push : step)
    for (const uint64_t id : push.payload.ids(push.header.count))
      ids.push_back(static_cast<int64_t>(id));
  const IdBatch batch(ids, 1);
  const int64_t dim = table.dim();
  const auto n = static_cast<int64_t>(batch.unique().size()) * dim;
  Payload sum = pool_.take(static_cast<size_t>(n) * sizeof(float));
  std::fill_n(sum.floats(), n, 0.0f);
  std::span<const uint32_t> places = batch.places();
  for (const Push& push : step) {
    add_rows(places.first(push.header.count),
             push.payload.floats(push.header.count * sizeof(uint64_t)), sum.floats(), dim);
    places = places.subspan(push.header.count);
  }
  scale(sum.floats(), 1.0f / static_cast<float>(step.size()), n);
  table.push(batch.unique(), sum.floats(), step.front().header.lr);
  pool_.give_back(std::move(sum));
  for (Push& push : step) pool_.give_back(std::move(push.payload));
}

// With the lock of members. A worker that is at a meeting to which others have not come yet pushes
// nothing; when all have, it goes on.
bool TableService::is_waited_for(size_t worker) const {
  if (left_[worker]) return false;
  uint64_t all = UINT64_MAX;
  for (size_t w = 0; w < left_.size(); ++w)
    if (!left_[w]) all = std::min(all, meeting_[w]);
  return meeting_[worker] == all;
}

void TableService::meet(int worker, uint64_t meeting) {
  {
    const std::scoped_lock lock(members_mutex_);
    uint64_t& own = meeting_[static_cast<size_t>(worker)];
    own = std::max(own, meeting);
  }
  if (job_.mode != Mode::kSync) return;
  for (const auto& state : states_) apply_steps(*state);
}

const std::string& TableService::name_of(const State& state) const {
  const auto t = static_cast<size_t>(
      std::ranges::find(states_, &state, [](const auto& s) { return s.get(); }) - states_.begin());
  return t < dense_.size() ? job_.dense[t].name : job_.sparse[t - dense_.size()].name;
}

std::vector<std::string> TableService::long_waits(std::chrono::milliseconds least) {
  std::vector<std::string> told;
  if (job_.mode != Mode::kSync) return told;
  for (const auto& state : states_) {
    const std::scoped_lock lock(state->mutex);
    if (state->waiting.empty()) state->named = false;
    if (state->named || state->waiting.empty() ||
        std::chrono::steady_clock::now() - state->waits_since < least)
      continue;
    state->named = true;
    std::string who, whom;
    for (const Waiting& w : state->waiting) who += str(who.empty() ? "" : ", ", w.request.worker);
    {
      const std::scoped_lock members(members_mutex_);
      for (size_t w = 0; w < left_.size(); ++w)
        if (is_waited_for(w) && state->pending[w].empty()) whom += str(whom.empty() ? "" : ", ", w);
    }
    told.push_back(
        str("table '", name_of(*state), "', step ", state->applied + 1, ": pulls of workers ", who,
            " wait for ",
            whom.empty() ? "first values, which worker 0 gives" : "the pushes of workers " + whom));
  }
  return told;
}

// --- members -------------------------------------------------------------------------------------

void TableService::leave(int worker) {
  {
    const std::scoped_lock lock(members_mutex_);
    left_[static_cast<size_t>(worker)] = true;
    lost_[static_cast<size_t>(worker)].clear();
  }
  for (const auto& state : states_) apply_steps(*state);
}

void TableService::lose(int worker, const std::string& why) {
  {
    const std::scoped_lock lock(members_mutex_);
    lost_[static_cast<size_t>(worker)] = why;
    if (why.empty()) left_[static_cast<size_t>(worker)] = false;
  }
  if (why.empty()) return;
  if (job_.mode == Mode::kAsync) return answer_waiting();
  for (const auto& state : states_) {
    std::vector<Waiting> refused;
    {
      const std::scoped_lock lock(state->mutex);
      refused.swap(state->waiting);
    }
    for (const Waiting& w : refused)
      refuse(*w.request.peer, w.request.header, Error::Kind::kComm, why);
  }
}

std::vector<uint64_t> TableService::pushes_of(int worker) const {
  std::vector<uint64_t> pushes;
  for (const auto& state : states_) {
    const std::scoped_lock lock(state->mutex);
    pushes.push_back(state->pushed[static_cast<size_t>(worker)]);
  }
  return pushes;
}

// --- going on from a snapshot --------------------------------------------------------------------

bool TableService::has_values() const {
  return std::ranges::all_of(dense_, [](const auto& table) {
    const std::scoped_lock lock(table->mutex);
    return table->values.is_set();
  });
}

std::vector<TableProgress> TableService::progress() const {
  std::vector<TableProgress> all;
  for (const auto& state : states_) {
    const std::scoped_lock lock(state->mutex);
    all.push_back({state->applied, state->pushed});
  }
  return all;
}

void TableService::restore(const std::vector<TableProgress>& progress) {
  for (size_t t = 0; t < states_.size(); ++t) {
    const std::scoped_lock lock(states_[t]->mutex);
    states_[t]->applied = progress[t].applied;
    states_[t]->pushed = progress[t].pushed;
  }
}

std::string TableService::confirm(int worker, const std::vector<uint64_t>& pushes) {
  std::string lost;
  for (size_t t = 0; t < std::min(states_.size(), pushes.size()); ++t) {
    const std::scoped_lock lock(states_[t]->mutex);
    uint64_t& own = states_[t]->pushed[static_cast<size_t>(worker)];
    if (own >= pushes[t]) continue;
    const std::string& name =
        t < dense_.size() ? job_.dense[t].name : job_.sparse[t - dense_.size()].name;
    lost += str(lost.empty() ? "" : ", ", name, " ", pushes[t] - own);
    own = pushes[t];
  }
  return lost;
}

void TableService::for_each_pending(const VisitPending& visit) const {
  for (size_t t = 0; t < states_.size(); ++t) {
    const std::scoped_lock lock(states_[t]->mutex);
    for (size_t w = 0; w < states_[t]->pending.size(); ++w)
      for (const Push& push : states_[t]->pending[w]) visit(t, w, push.header, push.payload.text());
  }
}

void TableService::keep_pending(size_t state, size_t worker, const Header& header,
                                std::string_view payload) {
  check_file(is_push(header.kind) && header.kind != Kind::kPushUses && worker < left_.size() &&
                 payload.size() == payload_bytes(header) && state < states_.size() &&
                 states_[state].get() == &state_of(header),
             "a push that waits for its step: ", to_string(header.kind), " of worker ", worker,
             " does not fit this job");
  Payload kept;
  kept.assign(payload);
  const std::scoped_lock lock(states_[state]->mutex);
  states_[state]->pending[worker].push_back({header, std::move(kept)});
}

std::vector<TableService::Member> TableService::members() const {
  const std::scoped_lock lock(members_mutex_);
  std::vector<Member> all;
  for (size_t w = 0; w < left_.size(); ++w) all.push_back({left_[w], meeting_[w]});
  return all;
}

void TableService::set_members(const std::vector<Member>& members) {
  const std::scoped_lock lock(members_mutex_);
  for (size_t w = 0; w < left_.size(); ++w) {
    left_[w] = members[w].left;
    meeting_[w] = members[w].meeting;
  }
}

void TableService::clear() {
  for (const auto& table : sparse_) table->clear();
  for (const auto& state : states_) {
    const std::scoped_lock lock(state->mutex);
    for (auto& pushes : state->pending) pushes.clear();
    state->waiting.clear();
    state->broken.clear();
  }
  const std::scoped_lock lock(members_mutex_);
  std::ranges::fill(lost_, "");
}

int64_t TableService::shrink(std::optional<float> threshold) {
  int64_t dropped = 0;
  for (const auto& table : sparse_) dropped += table->shrink(threshold);
  return dropped;
}

std::vector<TableStats> TableService::stats() const {
  std::vector<TableStats> all;
  const auto add_table = [&](const std::string& name, int64_t rows, int64_t resident,
                             int64_t bytes) {
    const State& state = *states_[all.size()];
    const std::scoped_lock lock(state.mutex);
    all.push_back({.name = name,
                   .rows = rows,
                   .resident = resident,
                   .bytes = bytes,
                   .version = static_cast<int64_t>(state.applied),
                   .pulled = state.pulled_items,
                   .pushed = state.pushed_items,
                   .waiting = static_cast<int64_t>(state.waiting.size())});
  };
  for (const auto& table : dense_)
    add_table(table->spec.name, table->values.size(), table->values.size(), table->values.bytes());
  for (size_t t = 0; t < sparse_.size(); ++t)
    add_table(job_.sparse[t].name, sparse_[t]->rows(), sparse_[t]->resident(), sparse_[t]->bytes());
  return all;
}

}  // namespace fleetx::ps
