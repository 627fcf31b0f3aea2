// What the tests of the parameter server share: update rules, a small job, servers in threads, and
// a proxy that breaks connections.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fleetx/base/fd.h"
#include "fleetx/ps/client.h"
#include "fleetx/ps/server.h"

namespace fleetx::ps {

UpdateRulePtr sgd();
UpdateRulePtr momentum();  // one state
// Two states, and a scalar that counts steps: value -= lr * g * scalar, scalar += 1.
UpdateRulePtr counting();

// One dense table of a matrix that two servers share and a bias, one sparse table of dimension 3.
JobSpec small_job(int workers, int servers, Mode mode, const UpdateRulePtr& rule);

// Servers of a job, each in a thread of this process. Errors of run() are kept.
class Servers {
 public:
  explicit Servers(const JobSpec& job, std::function<void(ServerOptions&)> change = nullptr,
                   const std::string& load_from = "");
  ~Servers();  // stops them
  Server& operator[](int s) { return *servers_[static_cast<size_t>(s)]; }
  std::vector<std::string> endpoints() const;
  void join();  // waits until they have ended by themselves
  const std::string& error(int s) const { return errors_[static_cast<size_t>(s)]; }

  ClientOptions client(int worker) const;

 private:
  const JobSpec job_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::string> errors_;
  std::vector<std::thread> threads_;
};

// The parameters of a dense table in memory.
struct Values {
  explicit Values(const DenseSpec& spec, float first = 0);
  std::vector<float*> pointers();
  std::vector<const float*> const_pointers() const;
  std::vector<std::vector<float>> params;
};

// Passes bytes on to a server, and breaks the connection once after this many in one direction.
class Proxy {
 public:
  enum class From { kWorker, kServer };
  explicit Proxy(const std::string& server);
  ~Proxy();
  std::string endpoint() const;
  void break_after(From from, int64_t bytes);
  int64_t passed(From from) const { return passed_[static_cast<size_t>(from)]; }
  int broken() const { return broken_; }

 private:
  void run();
  void carry(int worker, int server);

  const std::string server_;
  Fd listener_;
  std::string endpoint_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> passed_[2]{0, 0}, limit_[2]{INT64_MAX, INT64_MAX};
  std::atomic<int> broken_{0};
  std::thread thread_;
};

}  // namespace fleetx::ps
