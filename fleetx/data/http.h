// Files by HTTP(S), with libcurl: retried when the network or the server fails, resumed where they
// were cut off. Thread-safe.
//
// Errors: kComm where the server cannot be reached or fails again and again, kInvalidArgument for
// an address that is wrong or names nothing there, kUnsupported where the disk refuses.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fleetx::data {

struct HttpOptions {
  // In a row without a byte of progress; between them a pause that doubles.
  int attempts = 5;
  std::chrono::milliseconds pause{200};
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::seconds stall_timeout{30};   // without a byte
  const std::atomic<bool>* stop = nullptr;  // gives up when it becomes true
  std::function<void()> poll = {};          // called now and then; may throw to give up
};

bool is_url(const std::string& text);  // http:// or https://
// The address with scheme and host of FLEETX_MIRROR, where that is set.
std::string mirrored(const std::string& url);

// The whole text, at most `limit` bytes. The server says that there is none (404): nullopt.
std::optional<std::string> http_find(const std::string& url, uint64_t limit,
                                     const HttpOptions& options = {});
std::string http_get(const std::string& url, uint64_t limit, const HttpOptions& options = {});

// Into `path`, behind the bytes that are there already from an interrupted run. A server that does
// not know ranges sends all again. The caller checks the sum.
void http_download(const std::string& url, const std::string& path,
                   const HttpOptions& options = {});

}  // namespace fleetx::data
