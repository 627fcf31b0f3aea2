#include "fleetx/ps/client.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "fleetx/base/log.h"
#include "fleetx/comm/interruptible_wait.h"
#include "fleetx/ps/ask_server.h"
#include "fleetx/ps/identity.h"
#include "fleetx/ps/server_link.h"
#include "fleetx/ps/snapshot.h"

namespace fleetx::ps {

using comm::Clock;
using comm::Milliseconds;
using wire::Header;
using wire::Kind;
using StatePtr = std::shared_ptr<Ticket::State>;

namespace {

constexpr int kTickMs = 100;
constexpr Milliseconds kTryPeriod{100}, kTryTimeout{1'500}, kFirstNotice{3'000},
    kNoticePeriod{10'000}, kQuestion{500}, kNumberPatience{4'000}, kNumberPeriod{1'000};

iovec part_of(const void* data, size_t bytes) { return {const_cast<void*>(data), bytes}; }

void copy_rows(std::span<const uint32_t> places, const float* from, float* to, int64_t dim) {
  for (size_t i = 0; i < places.size(); ++i)
    std::copy_n(from + int64_t{places[i]} * dim, dim, to + static_cast<int64_t>(i) * dim);
}

}  // namespace

bool Ticket::done() const {
  if (!state_) return true;
  const std::scoped_lock lock(state_->mutex);
  return state_->left == 0;
}

void Ticket::wait() {
  if (!state_) return;
  const StatePtr state = std::move(state_);
  std::unique_lock lock(state->mutex);
  // Deadlines are the client's: its answer comes in time, whatever it is.
  comm::wait_interruptible(state->changed, lock, Clock::time_point::max(),
                           [&] { return state->left == 0; });
  if (state->error) throw copy(*state->error);
  if (state->finish) std::exchange(state->finish, nullptr)();
}

class Client::Impl {
 public:
  explicit Impl(ClientOptions options);
  ~Impl();

  const ClientOptions& options() const { return options_; }
  size_t servers() const { return links_.size(); }
  const ServerLink& link(size_t server) const { return *links_[server]; }
  const JobSpec& job() const { return options_.job; }

  void check_dense(int table, size_t params) const;
  void check_sparse(int table, const IdBatch& ids) const;

  // One part of a call for each server that it goes to.
  struct Call {
    Header header;
    std::vector<LinkRequestPtr> to;  // by server; null: not this one
  };
  Call call(Header header) const { return {header, std::vector<LinkRequestPtr>(links_.size())}; }
  LinkRequest& to(Call& call, size_t server) const;
  StatePtr start(Call call, std::function<void()> finish = nullptr);
  StatePtr ask(Header header, std::string_view text, bool all_servers);
  void wait_for_room();
  void flush();
  void leave() {
    for (const auto& link : links_) link->leave();
  }

  // How many pushes of all workers a pull of this table has to see.
  uint64_t wait_of(size_t state) const;
  void count_push(size_t state) { ++pushes_[state]; }

  std::vector<std::vector<Block>> blocks;  // of dense tables
  PayloadPool pool;
  std::atomic<uint64_t> barriers{0}, meetings{0};
  std::atomic<bool> left{false};

 private:
  void connect_all();
  bool find_copy(size_t server);
  std::optional<comm::Endpoint> other_place(size_t server) const;
  void end_thread();
  void run();

  const ClientOptions options_;
  const comm::TcpIdentity identity_;
  Fd epoll_{epoll_create1(EPOLL_CLOEXEC)}, wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<std::unique_ptr<ServerLink>> links_;
  std::vector<std::atomic<uint64_t>> pushes_;  // of this worker, by table
  std::atomic<bool> stop_{false};
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  int in_flight_ = 0;           // pushes
  std::optional<Error> error_;  // of a push: what was learned is lost, so no later call succeeds
};

// --- start and end -------------------------------------------------------------------------------

Client::Impl::Impl(ClientOptions options)
    : blocks((options.job.check(), options.job.blocks())),
      options_(std::move(options)),
      identity_(identity_of(options_.secret, options_.job_id)),
      pushes_(options_.job.dense.size() + options_.job.sparse.size()) {
  check_arg(options_.worker >= 0 && options_.worker < job().workers, "worker ", options_.worker,
            " of a job with ", job().workers, " workers");
  check_arg(static_cast<int>(options_.servers.size()) == job().servers, "the addresses of ",
            options_.servers.size(), " servers for a job with ", job().servers);
  check_arg(options_.max_pushes > 0, "max_pushes is ", options_.max_pushes, "; expected 1 or more");
  LinkOptions link;
  link.identity = identity_;
  link.worker = options_.worker;
  link.hello.start = random_number();
  link.hello.job = job().text();
  link.reconnect_timeout = options_.reconnect_timeout;
  link.silence = options_.silence;
  link.dense_tables = job().dense.size();
  if (options_.servers.size() > 1)
    link.find_copy = [this](int s) { return other_place(static_cast<size_t>(s)); };
  for (size_t s = 0; s < options_.servers.size(); ++s) {
    link.endpoint = resolve_server(options_.servers[s]);
    link.server = static_cast<int>(s);
    link.hello.server = static_cast<uint32_t>(s);
    link.id = s + 1;
    links_.push_back(std::make_unique<ServerLink>(link, epoll_.get()));
  }
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  // Keeps the first connections alive while later servers are waited for.
  thread_ = std::thread([this] { run(); });
  try {
    connect_all();
  } catch (...) {
    end_thread();
    throw;
  }
}

void Client::Impl::end_thread() {
  stop_ = true;
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

Client::Impl::~Impl() {
  end_thread();
  for (const auto& link : links_) link->close(Error(Error::Kind::kComm, "the client was closed"));
}

// Where a server is gone and its copy is in its place: the server that keeps it knows.
bool Client::Impl::find_copy(size_t server) {
  try {
    const ServerAnswer copy = ask_server(options_.servers[(server + 1) % options_.servers.size()],
                                         identity_, Kind::kCopy, kTryTimeout);
    if (static_cast<wire::Part>(copy.count) != wire::Part::kActive) return false;
    links_[server]->go_to(comm::parse_endpoint(copy.text));
    return true;
  } catch (const Error&) {
    return false;  // it is not there either, or keeps no copies
  }
}

// Of the two processes that may have the tables of a server, one that has all of them: the server
// that keeps its copy, and the server itself, which was started again.
std::optional<comm::Endpoint> Client::Impl::other_place(size_t server) const {
  const std::pair<size_t, Kind> places[] = {{(server + 1) % options_.servers.size(), Kind::kCopy},
                                            {server, Kind::kStandby}};
  for (const auto& place : places) {
    try {
      const ServerAnswer found =
          ask_server(options_.servers[place.first], identity_, place.second, kQuestion);
      const auto part = static_cast<wire::Part>(found.count);
      if (part == wire::Part::kStandby || part == wire::Part::kActive)
        return comm::parse_endpoint(found.text);
    } catch (const Error& e) {
      log::debug("ps", "server ", server, " is not at ", options_.servers[place.first], ": ",
                 e.what());
    }
  }
  return std::nullopt;
}

void Client::Impl::connect_all() {
  const comm::Deadline deadline = comm::after(options_.connect_timeout);
  auto notice = comm::after(kFirstNotice);
  for (size_t s = 0; s < links_.size(); ++s) {
    const auto& link = links_[s];
    const auto begin = Clock::now();
    for (bool is_copy = false;;) {
      std::string why;
      try {
        // One that is there but silent is named while it is waited for.
        const wire::Welcome welcome = link->connect(std::min(deadline, comm::after(kTryTimeout)));
        check_file(welcome.pushes.size() == pushes_.size(), link->name(), ": a welcome for ",
                   welcome.pushes.size(), " tables");
        for (size_t t = 0; t < pushes_.size(); ++t)
          pushes_[t] = std::max<uint64_t>(pushes_[t], welcome.pushes[t]);
        break;
      } catch (const comm::OtherCertificates& e) {
        fail(Error::Kind::kComm, str(link->name(), " ", e.what()));
      } catch (const comm::NotTrusted& e) {
        fail(Error::Kind::kComm,
             str(link->name(), " ", e.what(),
                 options_.secret_source.empty() ? "" : "; " + options_.secret_source));
      } catch (const comm::ConnectionLost& e) {
        why = e.what();
      } catch (const Error& e) {
        // The process may be gone, and its host not have told.
        const bool is_taken = std::string_view(e.what()).find(kHasNumber) != std::string_view::npos;
        if (is_taken && Clock::now() < begin + kNumberPatience) {
          std::this_thread::sleep_for(kNumberPeriod);
          continue;
        }
        if (e.kind() != Error::Kind::kTimeout) throw;
        why = str("does not answer (", e.what(), ")");
      }
      if (!is_copy && links_.size() > 1 && find_copy(s)) {
        is_copy = true;
        continue;
      }
      if (Clock::now() >= deadline)
        fail(Error::Kind::kTimeout,
             str(link->name(), " is not there after ",
                 std::chrono::duration<double>(options_.connect_timeout).count(), " s: it ", why));
      if (Clock::now() >= notice) {
        log::warning("ps", "worker ", options_.worker, " waits for ", link->name(), ": it ", why);
        notice = comm::after(kNoticePeriod);
      }
      check_interrupt();
      std::this_thread::sleep_for(kTryPeriod);
    }
  }
}

void Client::Impl::run() {
  auto next_tick = comm::after(Milliseconds(kTickMs));
  while (!stop_) {
    epoll_event events[64];
    const int n = epoll_wait(epoll_.get(), events, 64, comm::left_ms(next_tick));
    for (int i = 0; i < n; ++i) {
      if (events[i].data.u64 == 0) continue;
      ServerLink& link = *links_[events[i].data.u64 - 1];
      if (!link.on_event(events[i].events)) next_tick = Clock::now();  // connects again at once
    }
    if (Clock::now() < next_tick) continue;
    next_tick = comm::after(Milliseconds(kTickMs));
    if (!left)
      for (const auto& link : links_) link->tick();
  }
}

// --- calls ---------------------------------------------------------------------------------------

LinkRequest& Client::Impl::to(Call& call, size_t server) const {
  LinkRequestPtr& request = call.to[server];
  request = std::make_shared<LinkRequest>();
  request->header = call.header;
  request->deadline = comm::after(options_.request_timeout);
  return *request;
}

StatePtr Client::Impl::start(Call call, std::function<void()> finish) {
  check_arg(!left, "this worker has said goodbye to its servers");
  const auto state = std::make_shared<Ticket::State>();
  for (const LinkRequestPtr& request : call.to) state->left += request ? 1 : 0;
  state->finish = std::move(finish);
  state->texts.resize(links_.size());
  state->counts.resize(links_.size());
  if (is_push(call.header.kind)) {
    {
      const std::scoped_lock lock(mutex_);
      if (error_) throw copy(*error_);
      if (state->left > 0) ++in_flight_;
    }
    state->on_error = [this](const Error& e) {
      const std::scoped_lock lock(mutex_);
      if (!error_) error_ = copy(e);
    };
    state->on_done = [this] {
      const std::scoped_lock lock(mutex_);
      --in_flight_;
      changed_.notify_all();
    };
  }
  for (size_t s = 0; s < links_.size(); ++s) {
    if (!call.to[s]) continue;
    call.to[s]->ticket = state;
    links_[s]->submit(std::move(call.to[s]));
  }
  return state;
}

StatePtr Client::Impl::ask(Header header, std::string_view text, bool all_servers) {
  Call c = call(header);
  for (size_t s = 0; s < (all_servers ? links_.size() : 1); ++s) {
    const auto kept = std::make_shared<const std::string>(text);
    LinkRequest& request = to(c, s);
    if (!text.empty()) request.send = {part_of(kept->data(), kept->size())};
    request.keeps[0] = kept;
  }
  return start(std::move(c));
}

void Client::Impl::wait_for_room() {
  std::unique_lock lock(mutex_);
  comm::wait_interruptible(changed_, lock, Clock::time_point::max(),
                           [&] { return error_ || in_flight_ < options_.max_pushes; });
  if (error_) throw copy(*error_);
}

void Client::Impl::flush() {
  std::unique_lock lock(mutex_);
  comm::wait_interruptible(changed_, lock, Clock::time_point::max(),
                           [&] { return in_flight_ == 0; });
  if (error_) throw copy(*error_);
}

uint64_t Client::Impl::wait_of(size_t state) const {
  const uint64_t pushes = pushes_[state];
  if (job().mode == Mode::kSync) return pushes;
  if (job().staleness < 0) return 0;
  const auto staleness = static_cast<uint64_t>(job().staleness);
  return pushes > staleness ? pushes - staleness : 0;
}

void Client::Impl::check_dense(int table, size_t params) const {
  check_arg(table >= 0 && table < static_cast<int>(job().dense.size()), "there is no dense table ",
            table, " but ", job().dense.size());
  const size_t wanted = job().dense[static_cast<size_t>(table)].params.size();
  check_arg(params == wanted, "dense table '", job().dense[static_cast<size_t>(table)].name,
            "' has ", wanted, " parameters; ", params, " pointers were given");
}

void Client::Impl::check_sparse(int table, const IdBatch& ids) const {
  check_arg(table >= 0 && table < static_cast<int>(job().sparse.size()),
            "there is no sparse table ", table, " but ", job().sparse.size());
  check_arg(ids.servers() == static_cast<int>(links_.size()), "ids grouped for ", ids.servers(),
            " servers in a job with ", links_.size());
}

// --- dense tables --------------------------------------------------------------------------------

Ticket Client::pull_dense(int table, std::span<float* const> values) {
  Impl& impl = *impl_;
  impl.check_dense(table, values.size());
  const auto index = static_cast<size_t>(table);
  Impl::Call call = impl.call({.kind = Kind::kPullDense,
                               .table = static_cast<uint32_t>(table),
                               .wait = impl.wait_of(index)});
  for (const Block& block : impl.blocks[index]) {
    if (block.size() == 0) continue;
    const auto server = static_cast<size_t>(block.server);
    LinkRequest& request = call.to[server] ? *call.to[server] : impl.to(call, server);
    request.into.push_back(part_of(values[block.param] + block.begin,
                                   static_cast<size_t>(block.size()) * sizeof(float)));
  }
  return Ticket(impl.start(std::move(call)));
}

namespace {

// The blocks of each server, from the parameters' memory.
template <class Impl, class Call>
void send_blocks(Impl& impl, Call& call, const std::vector<Block>& blocks,
                 std::span<const float* const> values) {
  for (const Block& block : blocks) {
    if (block.size() == 0) continue;
    const auto server = static_cast<size_t>(block.server);
    LinkRequest& request = call.to[server] ? *call.to[server] : impl.to(call, server);
    request.send.push_back(part_of(values[block.param] + block.begin,
                                   static_cast<size_t>(block.size()) * sizeof(float)));
  }
}

}  // namespace

Ticket Client::push_dense(int table, std::span<const float* const> gradients, float lr) {
  Impl& impl = *impl_;
  impl.check_dense(table, gradients.size());
  impl.wait_for_room();
  Impl::Call call =
      impl.call({.kind = Kind::kPushDense, .table = static_cast<uint32_t>(table), .lr = lr});
  send_blocks(impl, call, impl.blocks[static_cast<size_t>(table)], gradients);
  impl.count_push(static_cast<size_t>(table));
  return Ticket(impl.start(std::move(call)));
}

Ticket Client::set_dense(int table, std::span<const float* const> values) {
  Impl& impl = *impl_;
  impl.check_dense(table, values.size());
  Impl::Call call = impl.call({.kind = Kind::kSetDense, .table = static_cast<uint32_t>(table)});
  send_blocks(impl, call, impl.blocks[static_cast<size_t>(table)], values);
  return Ticket(impl.start(std::move(call)));
}

// --- sparse tables -------------------------------------------------------------------------------

Ticket Client::pull_sparse(int table, std::shared_ptr<const IdBatch> ids, float* rows, Rows form,
                           Absent absent) {
  Impl& impl = *impl_;
  impl.check_sparse(table, *ids);
  const auto index = static_cast<size_t>(table);
  const int64_t dim = impl.job().sparse[index].dim;
  const size_t row_bytes = static_cast<size_t>(dim) * sizeof(float);
  const uint8_t flags = absent == Absent::kZero ? wire::kDoNotMake : uint8_t{0};
  Impl::Call call = impl.call({.kind = Kind::kPullSparse,
                               .flags = flags,
                               .table = static_cast<uint32_t>(table),
                               .wait = impl.wait_of(impl.job().dense.size() + index)});
  std::shared_ptr<Payload> staged;
  float* target = rows;
  if (form == Rows::kExpanded) {
    staged = std::make_shared<Payload>(impl.pool.take(ids->unique().size() * row_bytes));
    target = staged->floats();
  }
  for (size_t s = 0; s < impl.servers(); ++s) {
    const size_t begin = ids->begin(static_cast<int>(s));
    const size_t n = ids->begin(static_cast<int>(s) + 1) - begin;
    if (n == 0) continue;
    call.header.count = n;
    LinkRequest& request = impl.to(call, s);
    impl.link(s).put_ids(request, ids->unique().subspan(begin, n), ids);
    request.into = {part_of(target + static_cast<int64_t>(begin) * dim, n * row_bytes)};
    request.keeps[1] = staged;
  }
  if (!staged) return Ticket(impl.start(std::move(call)));
  auto expand = [&impl, staged, ids, rows, dim] {
    copy_rows(ids->places(), staged->floats(), rows, dim);
    impl.pool.give_back(std::move(*staged));
  };
  return Ticket(impl.start(std::move(call), std::move(expand)));
}

Ticket Client::push_sparse(int table, std::shared_ptr<const IdBatch> ids, const float* gradients,
                           float lr, Rows form) {
  Impl& impl = *impl_;
  impl.check_sparse(table, *ids);
  impl.wait_for_room();
  const auto index = static_cast<size_t>(table);
  const int64_t dim = impl.job().sparse[index].dim;
  const size_t row_bytes = static_cast<size_t>(dim) * sizeof(float);
  const auto n = static_cast<int64_t>(ids->unique().size()) * dim;
  const auto sums = std::shared_ptr<Payload>(
      new Payload(impl.pool.take(static_cast<size_t>(n) * sizeof(float))), [&impl](Payload* p) {
        impl.pool.give_back(std::move(*p));
        delete p;
      });
  if (form == Rows::kUnique) {
    std::copy_n(gradients, n, sums->floats());
  } else {
    std::fill_n(sums->floats(), n, 0.0f);
    add_rows(ids->places(), gradients, sums->floats(), dim);
  }
  Impl::Call call =
      impl.call({.kind = Kind::kPushSparse, .table = static_cast<uint32_t>(table), .lr = lr});
  for (size_t s = 0; s < impl.servers(); ++s) {
    const size_t begin = ids->begin(static_cast<int>(s));
    const size_t count = ids->begin(static_cast<int>(s) + 1) - begin;
    // A step of sync mode is complete when all workers have pushed, whatever their batches had.
    if (count == 0 && impl.job().mode == Mode::kAsync && impl.job().staleness < 0) continue;
    call.header.count = count;
    LinkRequest& request = impl.to(call, s);
    if (count == 0) continue;
    impl.link(s).put_ids(request, ids->unique().subspan(begin, count), ids);
    request.send.push_back(
        part_of(sums->floats() + static_cast<int64_t>(begin) * dim, count * row_bytes));
    request.keeps[1] = sums;
  }
  impl.count_push(impl.job().dense.size() + index);
  return Ticket(impl.start(std::move(call)));
}

Ticket Client::push_uses(int table, const IdBatch& ids, std::span<const float> shows,
                         std::span<const float> clicks) {
  Impl& impl = *impl_;
  impl.check_sparse(table, ids);
  impl.wait_for_room();
  const auto all = std::make_shared<std::pair<std::vector<uint64_t>, std::vector<float>>>(
      std::vector<uint64_t>(ids.unique().begin(), ids.unique().end()),
      std::vector<float>(2 * ids.unique().size()));
  const auto& [unique, uses] = *all;
  for (size_t i = 0; i < ids.places().size(); ++i) {
    all->second[2 * ids.places()[i]] += shows[i];
    all->second[2 * ids.places()[i] + 1] += clicks[i];
  }
  Impl::Call call = impl.call({.kind = Kind::kPushUses, .table = static_cast<uint32_t>(table)});
  for (size_t s = 0; s < impl.servers(); ++s) {
    const size_t begin = ids.begin(static_cast<int>(s));
    const size_t count = ids.begin(static_cast<int>(s) + 1) - begin;
    if (count == 0) continue;
    call.header.count = count;
    LinkRequest& request = impl.to(call, s);
    impl.link(s).put_ids(request, std::span(unique).subspan(begin, count), all);
    request.send.push_back(part_of(uses.data() + 2 * begin, count * 2 * sizeof(float)));
    request.keeps[1] = all;
  }
  return Ticket(impl.start(std::move(call)));
}

// --- commands ------------------------------------------------------------------------------------

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Client::~Client() = default;
int Client::servers() const { return static_cast<int>(impl_->servers()); }
int Client::worker() const { return impl_->options().worker; }
void Client::flush() { impl_->flush(); }

void Client::meet() {
  if (impl_->job().mode != Mode::kSync || impl_->job().workers == 1) return;
  impl_->flush();
  Ticket(impl_->ask({.kind = Kind::kMeet, .count = ++impl_->meetings}, {}, true)).wait();
}

void Client::barrier() {
  meet();
  Ticket(impl_->ask({.kind = Kind::kBarrier, .count = ++impl_->barriers}, {}, false)).wait();
}

void Client::save(const std::string& folder, const SaveOptions& options) {
  impl_->flush();
  Header header{.kind = Kind::kSave, .count = random_number()};
  if (options.mode == SaveOptions::Mode::kBase) header.flags |= wire::kBase;
  if (options.mode == SaveOptions::Mode::kDelta) header.flags |= wire::kDelta;
  if (options.text) header.flags |= wire::kText;
  try {
    Ticket(impl_->ask(header, folder, true)).wait();
  } catch (const Error&) {  // of one server: what others have written is of no use
    discard_parts(folder, header.count, servers(), options.mode);
    throw;
  }
  header.kind = Kind::kCommit;
  Ticket(impl_->ask(header, folder, false)).wait();
}

void Client::load(const std::string& folder) {
  impl_->flush();
  Ticket(impl_->ask({.kind = Kind::kLoad}, folder, true)).wait();
}

int64_t Client::shrink(std::optional<float> threshold) {
  impl_->flush();
  const StatePtr state = impl_->ask({.kind = Kind::kShrink,
                                     .flags = threshold ? wire::kByThreshold : uint8_t{0},
                                     .lr = threshold.value_or(0.0f),
                                     .count = random_number()},
                                    {}, true);
  Ticket(state).wait();
  int64_t dropped = 0;
  for (const uint64_t count : state->counts) dropped += static_cast<int64_t>(count);
  return dropped;
}

std::vector<ServerStats> Client::stats() {
  const StatePtr state = impl_->ask({.kind = Kind::kStats}, {}, true);
  Ticket(state).wait();
  std::vector<ServerStats> all;
  for (const std::string& text : state->texts) all.push_back(decode_stats(text));
  return all;
}

void Client::goodbye() {
  impl_->flush();
  impl_->leave();
  Ticket(impl_->ask({.kind = Kind::kGoodbye}, {}, true)).wait();
  impl_->left = true;
}

void Client::stop_servers() {
  impl_->leave();
  Ticket(impl_->ask({.kind = Kind::kStop}, {}, true)).wait();
  impl_->left = true;
}

ServerStats read_stats(const std::string& endpoint, const std::string& secret,
                       const std::string& job_id, std::chrono::milliseconds timeout) {
  return decode_stats(
      ask_server(endpoint, identity_of(secret, job_id), wire::Kind::kStats, timeout).text);
}

}  // namespace fleetx::ps
