#include "fleetx/ps/replica.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fleetx/base/log.h"
#include "fleetx/ps/ask_server.h"
#include "fleetx/ps/identity.h"

namespace fleetx::ps {

using wire::Header;
using wire::Kind;

namespace {

constexpr int kTickMs = 100;
constexpr comm::Milliseconds kGreeting{2'000};
// Workers wait for the confirmation meanwhile: less than the time after which they give up a
// server.
constexpr comm::Milliseconds kSilence{2'500}, kReconnect{3'000};
// Of those that wait for a keeper that cannot be asked.
constexpr comm::Milliseconds kFirstNotice{3'000}, kNoticePeriod{10'000};

Replica::State state_after(const Error& e) {
  const bool deposed = std::string_view(e.what()).find(kTookPlace) != std::string_view::npos;
  return deposed ? Replica::State::kDeposed : Replica::State::kLost;
}

}  // namespace

Replica::Replica(ReplicaOptions options)
    : options_(std::move(options)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
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

std::string Replica::endpoint() const {
  const std::scoped_lock lock(mutex_);
  return state_ == State::kThere ? endpoint_ : "";
}

// The keeper may start later, and chooses a port for the copy.
void Replica::seek() {
  auto notice = comm::after(kFirstNotice);
  while (!stop_ && state_ == State::kSeeking) {
    try {
      const std::string endpoint =
          ask_server(options_.keeper, options_.identity, Kind::kCopy, comm::Milliseconds(1'000))
              .text;
      const std::scoped_lock lock(mutex_);
      endpoint_ = endpoint;
      state_ = State::kThere;
    } catch (const Error& e) {
      if (comm::Clock::now() >= notice) {
        log::warning("ps", "server ", options_.server, " waits for its copy: ", e.what());
        notice = comm::after(kNoticePeriod);
      }
      std::this_thread::sleep_for(comm::Milliseconds(kTickMs));
    }
  }
}

void Replica::run() {
  seek();
  while (!stop_) {
    epoll_event events[64];
    const int n = epoll_wait(epoll_.get(), events, 64, kTickMs);
    std::vector<std::shared_ptr<ServerLink>> links;
    {
      const std::scoped_lock lock(mutex_);
      for (const Link& link : links_) links.push_back(link.link);
    }
    for (int i = 0; i < n; ++i)
      if (events[i].data.u64 > 0)
        if (const auto& link = links[events[i].data.u64 - 1]) link->on_event(events[i].events);
    for (const auto& link : links) {
      if (!link) continue;
      if (state_ == State::kThere)
        link->tick();
      else
        link->close(Error(Error::Kind::kComm, "there is no copy any more"));
    }
  }
}

void Replica::end(State state, const std::string& why) {
  State there = State::kThere;
  if (!state_.compare_exchange_strong(there, state)) return;
  log::warning("ps", "server ", options_.server,
               state == State::kLost ? " goes on without its copy: " : ": ", why);
}

void Replica::greet(int worker, uint64_t start) {
  if (state_ != State::kThere) return;
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
  std::shared_ptr<ServerLink> link;
  {
    const std::scoped_lock lock(mutex_);
    Link& known = links_[static_cast<size_t>(worker)];
    if (known.start == start) return;
    options.endpoint = comm::parse_endpoint(endpoint_);
    link = std::make_shared<ServerLink>(options, epoll_.get());
    known = {start, link};
  }
  try {
    link->connect(comm::after(kGreeting));
  } catch (const Error& e) {
    end(state_after(e), e.what());
  } catch (const comm::ConnectionLost& e) {
    end(State::kLost, str("it ", e.what()));
  }
}

void Replica::send(int worker, LinkRequestPtr request, Done done) {
  std::shared_ptr<ServerLink> link;
  {
    const std::scoped_lock lock(mutex_);
    link = links_[static_cast<size_t>(worker)].link;
  }
  if (state_ != State::kThere || !link) return done();
  request->deadline = comm::Deadline::max();
  request->ticket = std::make_shared<Ticket::State>();
  request->ticket->left = 1;
  request->ticket->on_error = [this](const Error& e) { end(state_after(e), e.what()); };
  // Who is deposed confirms nothing any more: its workers ask the copy.
  request->ticket->on_done = [this, done = std::move(done)] {
    if (state_ != State::kDeposed) done();
  };
  link->submit(std::move(request));
}

void Replica::forward(int worker, Header header, std::string_view payload, Done done) {
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
