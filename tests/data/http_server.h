// A web server on the loopback for tests: files from memory, ranges, and faults as they are asked
// for.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fleetx::testing {

class HttpServer {
 public:
  struct File {
    std::string body = {};
    bool ranges = true;
    int errors = 0;          // so many 503 before it is served
    uint64_t cut_after = 0;  // every answer breaks off after so many bytes; 0: never
    int cuts = 1 << 30;      // ... but only so often
    int status = 200;
    bool silent = false;  // takes the request and never answers
    std::string redirect = {};
  };

  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url(const std::string& path = "") const;
  void put(const std::string& path, const std::string& body) { behave(path, {.body = body}); }
  void behave(const std::string& path, File file);
  // The requests for a path so far, each as the first byte that it asked for.
  std::vector<uint64_t> requests(const std::string& path) const;

 private:
  void serve();
  void answer(int connection);

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, File> files_;
  std::map<std::string, std::vector<uint64_t>> requests_;
  std::thread thread_;
};

}  // namespace fleetx::testing
