#include "fleetx/data/http.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"

namespace fleetx::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long kOk = 200, kPartial = 206, kNotFound = 404, kTimeout = 408, kBadRange = 416,
               kTooMany = 429;  // NOLINT: libcurl's own type

// Receives the bytes. `size` is the number received so far.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual uint64_t size() const = 0;
  virtual void write(const char* data, size_t bytes) = 0;
  virtual void clear() = 0;
};

class TextSink final : public Sink {
 public:
  TextSink(const std::string& url, uint64_t limit) : url_(url), limit_(limit) {}
  uint64_t size() const override { return 0; }  // texts are short and not resumed
  void write(const char* data, size_t bytes) override {
    check_file(text_.size() + bytes <= limit_, url_, ": longer than ", limit_, " bytes");
    text_.append(data, bytes);
  }
  void clear() override { text_.clear(); }
  std::string take() { return std::move(text_); }

 private:
  const std::string& url_;
  uint64_t limit_;
  std::string text_;
};

class FileSink final : public Sink {
 public:
  explicit FileSink(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    struct stat info {};
    if (fd_ < 0) refuse();
    if (fstat(fd_, &info) != 0) refuse();
    size_ = static_cast<uint64_t>(info.st_size);
  }
  ~FileSink() override {
    if (fd_ >= 0) close(fd_);
  }
  uint64_t size() const override { return size_; }
  void write(const char* data, size_t bytes) override {
    while (bytes > 0) {
      const ssize_t done = ::write(fd_, data, bytes);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) refuse();
      data += done;
      bytes -= static_cast<size_t>(done);
      size_ += static_cast<uint64_t>(done);
    }
  }
  void clear() override {
    if (ftruncate(fd_, 0) != 0) refuse();
    size_ = 0;
  }

 private:
  [[noreturn]] void refuse() const {
    const int error = errno;
    const bool users = error == EACCES || error == ENOTDIR || error == ENOENT || error == EISDIR;
    fail(users ? Error::Kind::kInvalidArgument : Error::Kind::kUnsupported,
         str("cannot write ", path_, ": ", std::generic_category().message(error)));
  }

  const std::string path_;
  const int fd_;
  uint64_t size_ = 0;
};

// One request.
struct Request {
  CURL* curl = nullptr;
  Sink* sink = nullptr;
  const HttpOptions* options = nullptr;
  uint64_t from = 0;
  bool begun = false;
  std::exception_ptr error = {};
  char reason[CURL_ERROR_SIZE] = "";

  long status() const {  // NOLINT: libcurl's own type
    long code = 0;       // NOLINT
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }

  bool may_go_on() {
    try {
      if (options->poll) options->poll();
    } catch (...) {
      error = std::current_exception();
    }
    return !error && (options->stop == nullptr || !*options->stop);
  }

  // Ignores the body of an error response.
  size_t receive(const char* data, size_t bytes) {
    const long code = status();  // NOLINT
    if (code != kOk && code != kPartial) return bytes;
    try {
      if (!begun && (from == 0 || code == kOk)) sink->clear();
      begun = true;
      sink->write(data, bytes);
    } catch (...) {
      error = std::current_exception();
      return 0;
    }
    return bytes;
  }
};

size_t on_data(char* data, size_t, size_t bytes, void* request) {
  return static_cast<Request*>(request)->receive(data, bytes);
}

int on_progress(void* request, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Request*>(request)->may_go_on() ? 0 : 1;
}

bool is_loopback(const std::string& url) {
  const size_t at = url.find("://") + 3;
  for (const char* host : {"127.", "localhost", "[::1]"})
    if (url.compare(at, std::string::traits_type::length(host), host) == 0) return true;
  return false;
}

std::unique_ptr<CURL, void (*)(CURL*)> make_handle(const std::string& url, Request& request) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  std::unique_ptr<CURL, void (*)(CURL*)> handle(curl_easy_init(), curl_easy_cleanup);
  CURL* c = handle.get();
  FLEETX_CHECK(c != nullptr, "libcurl gives no handle");
  const HttpOptions& o = *request.options;
  request.curl = c;
  curl_easy_setopt(c, CURLOPT_URL, url.c_str());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(c, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);  // several threads use curl
  curl_easy_setopt(c, CURLOPT_USERAGENT, "fleetx");
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(o.connect_timeout.count()));
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, static_cast<long>(o.stall_timeout.count()));
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, request.reason);
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &request);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, &request);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  // Loopback addresses cannot be reached through a proxy.
  if (is_loopback(url)) curl_easy_setopt(c, CURLOPT_PROXY, "");
  return handle;
}

// False if the request is cancelled.
bool sleep_for(std::chrono::milliseconds time, const HttpOptions& o) {
  constexpr std::chrono::milliseconds kStep{10};
  for (; time.count() > 0 && (o.stop == nullptr || !*o.stop); time -= kStep) {
    if (o.poll) o.poll();
    std::this_thread::sleep_for(std::min(time, kStep));
  }
  return o.stop == nullptr || !*o.stop;
}

std::string reason_of(CURLcode result, const Request& request) {
  if (result == CURLE_OK) return str("the server answers ", request.status());
  return request.reason[0] != '\0' ? request.reason : curl_easy_strerror(result);
}

// False: the server has no such file.
bool fetch(const std::string& url, Sink& sink, const HttpOptions& options) {
  check_arg(is_url(url), "'", url, "' is not an address: http:// or https:// expected");
  const auto begin = Clock::now();
  uint64_t farthest = sink.size();
  std::chrono::milliseconds pause = options.pause;
  std::string reason;
  int total = 0;
  for (int attempt = 1; attempt <= options.attempts; ++attempt, ++total) {
    if (attempt > 1) {
      if (!sleep_for(pause, options)) break;
      pause *= 2;
    }
    Request request{.sink = &sink, .options = &options, .from = sink.size()};
    const auto handle = make_handle(url, request);
    if (request.from > 0)
      curl_easy_setopt(handle.get(), CURLOPT_RESUME_FROM_LARGE,
                       static_cast<curl_off_t>(request.from));
    const CURLcode result = curl_easy_perform(handle.get());
    if (request.error) std::rethrow_exception(request.error);
    const long status = request.status();  // NOLINT
    if (result == CURLE_OK && (status == kOk || status == kPartial)) {
      if (!request.begun && status == kOk) sink.clear();  // an empty file
      return true;
    }
    if (status == kNotFound) return false;
    check_arg(result != CURLE_URL_MALFORMAT && result != CURLE_UNSUPPORTED_PROTOCOL, "'", url,
              "' is not an address that can be used: ", reason_of(result, request));
    reason = reason_of(result, request);
    // The range was refused: the partial file is complete or belongs to another file. Start over.
    const bool bad_range = status == kBadRange || result == CURLE_RANGE_ERROR;
    if (bad_range) sink.clear();
    const bool refused =
        status >= 400 && status < 500 && !bad_range && status != kTimeout && status != kTooMany;
    check_arg(!refused, "cannot download ", url, ": ", reason);
    if (sink.size() > farthest) {
      farthest = sink.size();
      attempt = 0;
      pause = options.pause;
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  fail(Error::Kind::kComm, str("cannot download ", url, ": ", reason.empty() ? "stopped" : reason,
                               " (", total, " attempts in ", seconds, " s)"));
}

}  // namespace

bool is_url(const std::string& text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

std::string mirrored(const std::string& url) {
  const auto mirror = env::get("FLEETX_MIRROR");
  if (!mirror || !is_url(url)) return url;
  check_arg(is_url(*mirror), "FLEETX_MIRROR='", *mirror, "': http:// or https:// expected");
  const size_t path = url.find('/', url.find("://") + 3);
  return mirror->substr(0, mirror->find_last_not_of('/') + 1) +
         (path == std::string::npos ? "" : url.substr(path));
}

std::optional<std::string> http_find(const std::string& url, uint64_t limit,
                                     const HttpOptions& options) {
  TextSink sink(url, limit);
  if (!fetch(url, sink, options)) return std::nullopt;
  return sink.take();
}

std::string http_get(const std::string& url, uint64_t limit, const HttpOptions& options) {
  auto text = http_find(url, limit, options);
  check_arg(text.has_value(), "cannot download ", url, ": the server has no such file (404)");
  return *std::move(text);
}

void http_download(const std::string& url, const std::string& path, const HttpOptions& options) {
  FileSink sink(path);
  check_arg(fetch(url, sink, options), "cannot download ", url,
            ": the server has no such file (404)");
}

}  // namespace fleetx::data
