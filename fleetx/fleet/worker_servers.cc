#include "fleetx/fleet/worker_servers.h"

#include <algorithm>

#include "fleetx/base/error.h"

namespace fleetx::fleet {

WorkerServers::WorkerServers(ps::JobSpec job, Options options)
    : job_(std::move(job)), options_(std::move(options)) {
  for (size_t t = 0; t < job_.dense.size(); ++t)
    for (size_t i = 0; i < job_.dense[t].params.size(); ++i) {
      const ps::DenseParam& p = job_.dense[t].params[i];
      parameters_.emplace(p.name, static_cast<int>(places_.size()));
      places_.push_back({t, i, p.shape.numel()});
    }
  for (size_t t = 0; t < job_.sparse.size(); ++t)
    tables_.emplace(job_.sparse[t].name, static_cast<int>(t));
  pulled_.resize(job_.sparse.size());
  counted_.resize(job_.sparse.size());
  scaled_.resize(places_.size());
  if (options_.own_rules.empty()) return;
  for (const ps::SparseSpec& table : job_.sparse)
    own_.push_back(std::make_unique<GeoTable>(table.dim, options_.own_rules.at(table.name)));
}

void WorkerServers::connect(ps::ClientOptions options) {
  client_ = std::make_unique<ps::Client>(std::move(options));
}

ps::Client& WorkerServers::client() {
  check_arg(client_ != nullptr,
            "this worker is not connected to the parameter servers: call fleet.init_worker before "
            "it trains, and stop_worker after it");
  return *client_;
}

void WorkerServers::leave() {
  if (client_ == nullptr) return;
  wait_for_pushes();
  client_->goodbye();
  client_.reset();
}

int WorkerServers::parameter(std::string_view name) {
  const auto it = parameters_.find(name);
  check_arg(
      it != parameters_.end(), "the servers do not keep the parameter '", name,
      "': the program was made by another minimize than the one that this worker called last");
  return it->second;
}

int WorkerServers::table(std::string_view name) {
  const auto it = tables_.find(name);
  check_arg(
      it != tables_.end(), "the servers do not keep the table '", name,
      "': the program was made by another minimize than the one that this worker called last");
  return it->second;
}

// All lookups of a table are one request, and all requests are on their way before the first one is
// waited for.
void WorkerServers::pull_rows(std::span<const Lookup> lookups, bool make) {
  ps::Client& servers = client();
  for (const Lookup& l : lookups)
    for (const int64_t id : std::span(l.ids, static_cast<size_t>(l.count)))
      check_arg(id >= 0, "table '", job_.sparse[static_cast<size_t>(l.table)].name, "': id ", id,
                " is negative");
  if (!own_.empty()) return pull_own(lookups, make);
  for (const Lookup& l : lookups) pulled_[static_cast<size_t>(l.table)].given.clear();
  for (const Lookup& l : lookups) {
    std::vector<int64_t>& given = pulled_[static_cast<size_t>(l.table)].given;
    given.insert(given.end(), l.ids, l.ids + l.count);
  }
  const auto first_of_table = [&](size_t i) {
    return std::none_of(lookups.begin(), lookups.begin() + static_cast<std::ptrdiff_t>(i),
                        [&](const Lookup& l) { return l.table == lookups[i].table; });
  };
  for (size_t i = 0; i < lookups.size(); ++i) {
    if (!first_of_table(i)) continue;
    const int table = lookups[i].table;
    Pulled& p = pulled_[static_cast<size_t>(table)];
    p.ids = std::make_shared<const ps::IdBatch>(p.given, servers.servers());
    p.rows.resize(p.ids->unique().size() *
                  static_cast<size_t>(job_.sparse[static_cast<size_t>(table)].dim));
    p.ticket = servers.pull_sparse(table, p.ids, p.rows.data(), ps::Rows::kUnique,
                                   make ? ps::Absent::kMake : ps::Absent::kZero);
  }
  for (size_t i = 0; i < lookups.size(); ++i)
    if (first_of_table(i)) pulled_[static_cast<size_t>(lookups[i].table)].ticket.wait();
  std::vector<size_t> at(pulled_.size());  // ids of each table that are done
  for (const Lookup& l : lookups) {
    const auto t = static_cast<size_t>(l.table);
    const auto dim = static_cast<size_t>(job_.sparse[t].dim);
    const std::span<const uint32_t> places = pulled_[t].ids->places();
    float* to = l.rows;
    for (int64_t i = 0; i < l.count; ++i, to += dim)
      std::copy_n(pulled_[t].rows.data() + places[at[t]++] * dim, dim, to);
  }
}

template <class P, class Values, class Get>
std::vector<std::vector<P>> WorkerServers::by_table(const Values& values, Get get) const {
  std::vector<std::vector<P>> all(job_.dense.size());
  for (size_t t = 0; t < all.size(); ++t) all[t].resize(job_.dense[t].params.size());
  for (const auto& value : values) {
    const Place& p = place(value.parameter);
    all[p.table][p.index] = get(value);
  }
  for (size_t t = 0; t < all.size(); ++t)
    for (size_t i = 0; i < all[t].size(); ++i)
      FLEETX_CHECK(all[t][i] != nullptr, "'", job_.dense[t].params[i].name, "' is left out");
  return all;
}

void WorkerServers::push(std::span<const Gradient> dense, std::span<const RowGradient> rows) {
  ps::Client& servers = client();
  wait_for_pushes();
  if (!dense.empty()) {
    std::vector<float> rates(job_.dense.size());
    const auto gradients = by_table<const float*>(dense, [&](const Gradient& g) {
      rates[place(g.parameter).table] = g.lr;
      std::vector<float>& scaled = scaled_[static_cast<size_t>(g.parameter)];
      // Async: the gradient's memory is used again while it travels.
      const bool travels_later = job_.mode == ps::Mode::kAsync && !options_.waits_for_pushes;
      if (g.scale == 1.0f && !travels_later) return g.values;
      scaled.resize(static_cast<size_t>(place(g.parameter).count));
      std::transform(g.values, g.values + scaled.size(), scaled.begin(),
                     [&](float v) { return v * g.scale; });
      return static_cast<const float*>(scaled.data());
    });
    for (size_t t = 0; t < gradients.size(); ++t)
      pushes_.push_back(servers.push_dense(static_cast<int>(t), gradients[t], rates[t]));
  }
  if (!own_.empty()) {
    for (const RowGradient& gradient : rows) update_own(gradient);
    return;
  }
  for (const RowGradient& gradient : rows) push_rows(gradient);
  push_uses();
  if (options_.waits_for_pushes) wait_for_pushes();
}

void WorkerServers::push_rows(const RowGradient& g) {
  const auto t = static_cast<size_t>(g.table);
  const Pulled& pulled = pulled_[t];
  const auto count = static_cast<size_t>(g.count);
  // Nearly always these are the ids that were asked for, in their order.
  const bool same =
      pulled.ids != nullptr && std::ranges::equal(pulled.given, std::span(g.ids, count));
  const auto ids =
      same ? pulled.ids
           : std::make_shared<const ps::IdBatch>(std::span(g.ids, count), client_->servers());
  const float* values = g.values;
  if (g.scale != 1.0f) {
    scaled_rows_.resize(count * static_cast<size_t>(job_.sparse[t].dim));
    std::transform(values, values + scaled_rows_.size(), scaled_rows_.begin(),
                   [&](float v) { return v * g.scale; });
    values = scaled_rows_.data();
  }
  pushes_.push_back(client_->push_sparse(g.table, ids, values, g.lr, ps::Rows::kExpanded));
}

void WorkerServers::count(const Uses& u) {
  Counted& counted = counted_[static_cast<size_t>(u.table)];
  counted.ids.insert(counted.ids.end(), u.ids.begin(), u.ids.end());
  counted.shows.insert(counted.shows.end(), u.shows.begin(), u.shows.end());
  counted.clicks.insert(counted.clicks.end(), u.clicks.begin(), u.clicks.end());
}

// After the gradients, which may have made the rows.
void WorkerServers::push_uses() {
  for (size_t t = 0; t < counted_.size(); ++t) {
    Counted& c = counted_[t];
    if (c.ids.empty()) continue;
    const ps::IdBatch ids(c.ids, client_->servers());
    pushes_.push_back(client_->push_uses(static_cast<int>(t), ids, c.shows, c.clicks));
    c.ids.clear();
    c.shows.clear();
    c.clicks.clear();
  }
}

void WorkerServers::wait_for_pushes() {
  for (ps::Ticket& push : pushes_) push.wait();
  pushes_.clear();
}

void WorkerServers::pull(std::span<const Value> values) {
  ps::Client& servers = client();
  const auto pointers = by_table<float*>(values, [](const Value& v) { return v.values; });
  std::vector<ps::Ticket> pulls;
  for (size_t t = 0; t < pointers.size(); ++t)
    pulls.push_back(servers.pull_dense(static_cast<int>(t), pointers[t]));
  for (ps::Ticket& pull : pulls) pull.wait();
  // Sync: the answer to the pull says that the gradients were applied, so their memory is free.
  if (job_.mode == ps::Mode::kSync) wait_for_pushes();
}

void WorkerServers::start_with(std::span<const Value> values) {
  if (!connected()) return;  // init_worker will do it
  if (options_.gives_first_values) {
    const auto pointers = by_table<const float*>(values, [](const Value& v) { return v.values; });
    for (size_t t = 0; t < pointers.size(); ++t)
      client_->set_dense(static_cast<int>(t), pointers[t]).wait();
  }
  pull(values);
}

// --- geo -----------------------------------------------------------------------------------------

// Those of the ids that are not here yet come from the servers.
void WorkerServers::bring(size_t table, std::span<const int64_t> ids, bool make) {
  GeoTable& own = *own_[table];
  std::vector<int64_t> missing;
  for (const int64_t id : ids)
    if (!own.has(static_cast<uint64_t>(id))) missing.push_back(id);
  if (missing.empty()) return;
  const auto batch = std::make_shared<const ps::IdBatch>(missing, client_->servers());
  const auto dim = static_cast<size_t>(job_.sparse[table].dim);
  std::vector<float> rows(batch->unique().size() * dim);
  client_
      ->pull_sparse(static_cast<int>(table), batch, rows.data(), ps::Rows::kUnique,
                    make ? ps::Absent::kMake : ps::Absent::kZero)
      .wait();
  for (size_t i = 0; i < batch->unique().size(); ++i)
    own.add(batch->unique()[i], rows.data() + i * dim);
}

void WorkerServers::pull_own(std::span<const Lookup> lookups, bool make) {
  for (const Lookup& l : lookups) {
    const auto t = static_cast<size_t>(l.table);
    const std::span ids(l.ids, static_cast<size_t>(l.count));
    const int64_t dim = job_.sparse[t].dim;
    if (make) {
      bring(t, ids, make);
      for (int64_t i = 0; i < l.count; ++i)
        own_[t]->copy(static_cast<uint64_t>(l.ids[i]), l.rows + i * dim);
      continue;
    }
    // A test makes no rows, and keeps none.
    const auto batch = std::make_shared<const ps::IdBatch>(ids, client_->servers());
    client_->pull_sparse(l.table, batch, l.rows, ps::Rows::kExpanded, ps::Absent::kZero).wait();
    for (int64_t i = 0; i < l.count; ++i)
      if (own_[t]->has(static_cast<uint64_t>(l.ids[i])))
        own_[t]->copy(static_cast<uint64_t>(l.ids[i]), l.rows + i * dim);
  }
}

void WorkerServers::update_own(const RowGradient& g) {
  const auto t = static_cast<size_t>(g.table);
  const std::span ids(g.ids, static_cast<size_t>(g.count));
  const ps::IdBatch batch(ids, client_->servers());
  const auto dim = static_cast<size_t>(job_.sparse[t].dim);
  std::vector<float> sums(batch.unique().size() * dim);
  for (size_t i = 0; i < ids.size(); ++i)
    for (size_t k = 0; k < dim; ++k)
      sums[batch.places()[i] * dim + k] += g.values[i * dim + k] * g.scale;
  own_[t]->update(batch.unique(), sums.data(), g.lr);
}

// As for parameters, but only rows that this worker has changed travel.
void WorkerServers::exchange_rows() {
  const float share = 1.0f / static_cast<float>(job_.workers);
  for (size_t t = 0; t < own_.size(); ++t) {
    const std::vector<int64_t> changed = own_[t]->take_changed();
    if (changed.empty()) continue;
    const auto batch = std::make_shared<const ps::IdBatch>(changed, client_->servers());
    const auto dim = static_cast<size_t>(job_.sparse[t].dim);
    std::vector<float> rows(changed.size() * dim);
    for (size_t i = 0; i < changed.size(); ++i)
      own_[t]->share(batch->unique()[i], share, rows.data() + i * dim);
    const auto table = static_cast<int>(t);
    client_->push_sparse(table, batch, rows.data(), 1.0f, ps::Rows::kUnique).wait();
    client_->pull_sparse(table, batch, rows.data(), ps::Rows::kUnique).wait();
    for (size_t i = 0; i < changed.size(); ++i)
      own_[t]->rebase(batch->unique()[i], rows.data() + i * dim);
  }
  push_uses();
  wait_for_pushes();
}

void WorkerServers::exchange(std::span<const Exchange> values) {
  ps::Client& servers = client();
  if (!own_.empty()) exchange_rows();
  const float share = 1.0f / static_cast<float>(job_.workers);
  const auto deltas = by_table<const float*>(values, [&](const Exchange& e) {
    std::vector<float>& delta = scaled_[static_cast<size_t>(e.parameter)];
    delta.resize(static_cast<size_t>(place(e.parameter).count));
    for (size_t i = 0; i < delta.size(); ++i) {
      delta[i] = (e.value[i] - e.base[i]) * share;
      e.base[i] += delta[i];
    }
    return static_cast<const float*>(delta.data());
  });
  for (size_t t = 0; t < deltas.size(); ++t)
    pushes_.push_back(servers.push_dense(static_cast<int>(t), deltas[t], 1.0f));
  wait_for_pushes();
  // The servers' values replace the base; what is the worker's own stays on top of them.
  std::vector<std::vector<float>> now(places_.size());
  const auto pointers = by_table<float*>(values, [&](const Exchange& e) {
    std::vector<float>& value = now[static_cast<size_t>(e.parameter)];
    value.resize(static_cast<size_t>(place(e.parameter).count));
    return value.data();
  });
  for (size_t t = 0; t < pointers.size(); ++t)
    servers.pull_dense(static_cast<int>(t), pointers[t]).wait();
  for (const Exchange& e : values) {
    const std::vector<float>& value = now[static_cast<size_t>(e.parameter)];
    for (size_t i = 0; i < value.size(); ++i) {
      e.value[i] += value[i] - e.base[i];
      e.base[i] = value[i];
    }
  }
}

}  // namespace fleetx::fleet
