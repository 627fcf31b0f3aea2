// Downloads by HTTP(S) with libcurl, with retries and resume. Thread-safe.
//
// Errors: kComm if the server cannot be reached or all retries fail, kInvalidArgument for a wrong
// address or a missing file, kUnsupported if the disk cannot be written.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fleetx::data {

struct HttpOptions {
  // Consecutive attempts without progress, with exponential backoff.
  int attempts = 5;
  std::chrono::milliseconds pause{200};
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::seconds stall_timeout{30};   // without a byte
  const std::atomic<bool>* stop = nullptr;  // cancels when it becomes true
  std::function<void()> poll = {};          // called from time to time; may throw to cancel
};

bool is_url(const std::string& text);  // http:// or https://
// The address with scheme and host replaced by those of FLEETX_MIRROR, if set.
std::string mirrored(const std::string& url);

// The whole text, at most `limit` bytes. nullopt if the server has no such file (404).
std::optional<std::string> http_find(const std::string& url, uint64_t limit,
                                     const HttpOptions& options = {});
std::string http_get(const std::string& url, uint64_t limit, const HttpOptions& options = {});

// Downloads to `path` and resumes after the bytes that an interrupted run has left. A server
// without range requests sends all of it again. The caller verifies the checksum.
void http_download(const std::string& url, const std::string& path,
                   const HttpOptions& options = {});

}  // namespace fleetx::data
