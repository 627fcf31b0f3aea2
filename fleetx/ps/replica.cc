#include "fleetx/ps/replica.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "fleetx/base/file.h"
#include "fleetx/base/log.h"
#include "fleetx/ps/identity.h"

namespace fleetx::ps {

using comm::Milliseconds;
using wire::Header;
using wire::Kind;

namespace {

constexpr int kTickMs = 100;
constexpr Milliseconds kGreeting{2'000}, kQuestion{1'000};
// Workers wait for the confirmation meanwhile: less than the time after which they give up a
// server.
constexpr Milliseconds kSilence{2'500}, kReconnect{3'000};
// Of those that wait for a keeper that cannot be asked.
constexpr Milliseconds kFirstNotice{3'000}, kNoticePeriod{10'000};
// How often one that was started again is looked for.
constexpr Milliseconds kLookPeriod{300};
// Of a part of the state, and of taking over all of it.
constexpr Milliseconds kStatePart{10'000}, kTakeOver{120'000};
// Changes that may be in flight when the last of them are waited for, and for how long: pushes wait
// meanwhile.
constexpr int64_t kFewInFlight = 64;
constexpr Milliseconds kLastOnes{1'500};

Replica::State state_after(const Error& e) {
  const bool deposed = std::string_view(e.what()).find(kTookPlace) != std::string_view::npos;
  return deposed ? Replica::State::kDeposed : Replica::State::kAlone;
}

}  // namespace

Replica::Replica(ReplicaOptions options)
    : options_(std::move(options)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      state_(options_.dormant ? State::kDormant : State::kSeeking),
      links_(static_cast<size_t>(options_.job.workers)) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  thread_ = std::thread([this] { run(); });
}

Replica::~Replica() {
  stop_ = true;
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
  thread_.join();
}

std::string Replica::whose() const {
  const int keeper = options_.question == Kind::kCopy ? options_.server + 1 : options_.server;
  return str(", which parameter server ", keeper % options_.job.servers, " at ", options_.partner,
             " keeps: ");
}

std::string Replica::endpoint() const {
  const std::scoped_lock lock(mutex_);
  return state_ == State::kThere ? endpoint_ : "";
}

void Replica::wake() {
  State dormant = State::kDormant;
  state_.compare_exchange_strong(dormant, State::kAlone);
}

// --- its thread ----------------------------------------------------------------------------------

// The keeper may start later, and chooses a port for the copy.
void Replica::seek() {
  auto notice = comm::after(kFirstNotice);
  while (!stop_ && state_ == State::kSeeking) {
    try {
      const ServerAnswer found =
          ask_server(options_.partner, options_.identity, options_.question, kQuestion);
      const std::scoped_lock lock(mutex_);
      endpoint_ = found.text;
      // The keeper was started again before anything was confirmed.
      state_ = static_cast<wire::Part>(found.count) == wire::Part::kBlank ? State::kAlone
                                                                          : State::kThere;
    } catch (const Error& e) {
      if (comm::Clock::now() >= notice) {
        log::warning("ps", "server ", options_.server, " waits for its copy", whose(), e.what());
        notice = comm::after(kNoticePeriod);
      }
      std::this_thread::sleep_for(Milliseconds(kTickMs));
    }
  }
}

void Replica::run() {
  seek();
  auto next_look = comm::Clock::now();
  while (!stop_) {
    pump(kTickMs);
    if (state_ != State::kAlone || comm::Clock::now() < next_look) continue;
    look_for_copy();
    next_look = comm::after(kLookPeriod);
  }
}

void Replica::pump(int milliseconds) {
  epoll_event events[64];
  const int n = epoll_wait(epoll_.get(), events, 64, milliseconds);
  std::vector<Link> links;
  {
    const std::scoped_lock lock(mutex_);
    links = links_;
  }
  for (int i = 0; i < n; ++i)
    if (events[i].data.u64 > 0)
      if (const auto& link = links[events[i].data.u64 - 1].link) link->on_event(events[i].events);
  for (const Link& link : links) {
    if (!link.link) continue;
    if (takes_changes())
      link.link->tick();
    else
      link.link->close(Error(Error::Kind::kComm, "there is no copy any more"));
  }
}

void Replica::end(State state, const std::string& why) {
  for (State now : {State::kThere, State::kCatchingUp})
    if (state_.compare_exchange_strong(now, state)) {
      log::warning("ps", "server ", options_.server,
                   state == State::kAlone ? " goes on without its copy" + whose() : ": ", why);
      return;
    }
}

// --- a copy that is made again -------------------------------------------------------------------

void Replica::look_for_copy() {
  try {
    const ServerAnswer found =
        ask_server(options_.partner, options_.identity, options_.question, kQuestion);
    const auto part = static_cast<wire::Part>(found.count);
    if (part == wire::Part::kActive && options_.question == Kind::kCopy) {
      State alone = State::kAlone;
      if (state_.compare_exchange_strong(alone, State::kDeposed))
        log::warning("ps", "server ", options_.server, ": ", kTookPlace);
      return;
    }
    // It could not be reached for a while, and has missed changes.
    if (part == wire::Part::kStandby)
      ServerQuestions(found.text, options_.identity, kQuestion)
          .ask({.kind = Kind::kForget}, {}, kTakeOver);
    if (part == wire::Part::kStandby || part == wire::Part::kBlank) catch_up(found.text);
  } catch (const Error& e) {
    log::debug("ps", "server ", options_.server, " has no copy: ", e.what());
  }
}

void Replica::catch_up(const std::string& endpoint) {
  pump(0);  // links to the last copy are closed
  const auto begin = comm::Clock::now();
  try {
    ServerQuestions copy(endpoint, options_.identity, kQuestion);
    const auto file = std::make_unique<StateFile>(options_.disk);
    options_.stand_still([&] {
      const std::vector<WorkerProgress> workers = options_.save_state(file->path());
      const std::scoped_lock lock(mutex_);
      endpoint_ = endpoint;
      connects_at_once_ = false;
      for (size_t w = 0; w < links_.size(); ++w)
        links_[w] = workers[w].start == 0
                        ? Link{}
                        : Link{workers[w].start, make_link(static_cast<int>(w), workers[w].start,
                                                           workers[w].last + 1)};
      state_ = State::kCatchingUp;
    });
    send_state(copy, *file);
    while (connect_next()) {
    }
    while (in_flight_ > kFewInFlight && state_ == State::kCatchingUp && !stop_) pump(kTickMs);
    options_.stand_still([&] {
      const auto deadline = comm::after(kLastOnes);
      while (in_flight_ > 0 && state_ == State::kCatchingUp && comm::Clock::now() < deadline)
        pump(1);
      if (state_ != State::kCatchingUp) return;
      check_arg(in_flight_ == 0, "it does not confirm what has changed meanwhile");
      copy.ask({.kind = Kind::kComplete}, {}, kQuestion);
      state_ = State::kThere;
    });
    if (state_ == State::kThere)
      log::warning("ps", "server ", options_.server, " has a copy again, at ", endpoint, " (after ",
                   comm::seconds_since(begin), " s)");
  } catch (const Error& e) {
    end(State::kAlone, e.what());
  }
}

void Replica::send_state(ServerQuestions& copy, const StateFile& file) const {
  const FileReader state(file.path());
  std::string part;
  for (uint64_t at = 0; at < state.size(); at += part.size()) {
    part.resize(std::min<uint64_t>(wire::kMaxStateBytes, state.size() - at));
    state.read_at(at, part.data(), part.size());
    copy.ask({.kind = Kind::kState, .count = at}, part, kStatePart);
  }
  copy.ask({.kind = Kind::kFollow}, {}, kTakeOver);
}

// One that was made before the copy had its state; false: there is none any more.
bool Replica::connect_next() {
  std::shared_ptr<ServerLink> link;
  {
    const std::scoped_lock lock(mutex_);
    const auto next =
        std::ranges::find_if(links_, [](const Link& l) { return l.link && !l.connected; });
    connects_at_once_ = next == links_.end();
    if (connects_at_once_) return false;
    next->connected = true;
    link = next->link;
  }
  connect(*link);
  return state_ == State::kCatchingUp;
}

// --- changes -------------------------------------------------------------------------------------

std::shared_ptr<ServerLink> Replica::make_link(int worker, uint64_t start,
                                               uint64_t first_sequence) const {
  LinkOptions options;
  options.identity = options_.identity;
  options.worker = worker;
  options.server = options_.server;
  options.hello = {.start = start,
                   .server = static_cast<uint32_t>(options_.server),
                   .job = options_.job.text(),
                   .forwarded = 1};
  options.reconnect_timeout = kReconnect;
  options.silence = kSilence;
  options.dense_tables = options_.job.dense.size();
  options.id = static_cast<uint64_t>(worker) + 1;
  options.first_sequence = first_sequence;
  options.endpoint = comm::parse_endpoint(endpoint_);
  return std::make_shared<ServerLink>(options, epoll_.get());
}

void Replica::connect(ServerLink& link) {
  try {
    link.connect(comm::after(kGreeting));
  } catch (const Error& e) {
    end(state_after(e), e.what());
  } catch (const comm::ConnectionLost& e) {
    end(State::kAlone, str("it ", e.what()));
  }
}

void Replica::greet(int worker, uint64_t start) {
  if (!takes_changes()) return;
  std::shared_ptr<ServerLink> link;
  {
    const std::scoped_lock lock(mutex_);
    Link& known = links_[static_cast<size_t>(worker)];
    if (known.start == start) return;
    link = make_link(worker, start, 1);
    known = {start, link, connects_at_once_};
    if (!connects_at_once_) return;
  }
  connect(*link);
}

void Replica::send(int worker, LinkRequestPtr request, Done done) {
  std::shared_ptr<ServerLink> link;
  {
    const std::scoped_lock lock(mutex_);
    link = links_[static_cast<size_t>(worker)].link;
  }
  const State state = state_;
  if ((state != State::kThere && state != State::kCatchingUp) || !link) return done();
  request->deadline = comm::Deadline::max();
  request->ticket = std::make_shared<Ticket::State>();
  request->ticket->left = 1;
  request->ticket->on_error = [this](const Error& e) { end(state_after(e), e.what()); };
  // Who is deposed confirms nothing any more.
  request->ticket->on_done = [this, done = state == State::kThere ? done : nullptr] {
    --in_flight_;
    if (done && state_ != State::kDeposed) done();
  };
  ++in_flight_;
  link->submit(std::move(request));
  if (state == State::kCatchingUp) done();
}

void Replica::forward(int worker, Header header, std::string_view payload, Done done) {
  if (state_ == State::kDeposed) return;  // its workers ask the copy
  if (!takes_changes()) return done();
  auto request = std::make_shared<LinkRequest>();
  const auto kept = std::make_shared<const std::string>(payload);
  request->header = header;
  if (!kept->empty()) request->send = {{const_cast<char*>(kept->data()), kept->size()}};
  request->keeps[0] = kept;
  send(worker, std::move(request), std::move(done));
}

void Replica::after_all(int worker, Done done) {
  forward(worker, {.kind = Kind::kPing}, {}, std::move(done));
}

}  // namespace fleetx::ps
