#include "tests/data/http_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "fleetx/base/error.h"

namespace fleetx::testing {
namespace {

void send_all(int connection, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t done = send(connection, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (done <= 0) return;
    at += static_cast<size_t>(done);
  }
}

}  // namespace

HttpServer::HttpServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, raw, length) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, raw, &length) != 0)
    throw std::runtime_error("the test server cannot listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

HttpServer::~HttpServer() {
  stop_ = true;
  thread_.join();
  close(listener_);
}

std::string HttpServer::url(const std::string& path) const {
  return str("http://127.0.0.1:", port_, path);
}

void HttpServer::behave(const std::string& path, File file) {
  const std::scoped_lock lock(mutex_);
  files_[path] = std::move(file);
}

std::vector<uint64_t> HttpServer::requests(const std::string& path) const {
  const std::scoped_lock lock(mutex_);
  const auto found = requests_.find(path);
  return found == requests_.end() ? std::vector<uint64_t>{} : found->second;
}

void HttpServer::serve() {
  while (!stop_) {
    pollfd waiting{listener_, POLLIN, 0};
    if (poll(&waiting, 1, 20) <= 0) continue;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    answer(connection);
    close(connection);
  }
}

void HttpServer::answer(int connection) {
  std::string request;
  char block[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = recv(connection, block, sizeof(block), 0);
    if (got <= 0) return;
    request.append(block, static_cast<size_t>(got));
  }
  const size_t begin = request.find(' ') + 1;
  const std::string path = request.substr(begin, request.find(' ', begin) - begin);
  const size_t range = request.find("Range: bytes=");
  uint64_t from = range == std::string::npos ? 0 : std::stoull(request.substr(range + 13));

  File file{.status = 404};
  {
    const std::scoped_lock lock(mutex_);
    requests_[path].push_back(from);
    if (const auto found = files_.find(path); found != files_.end()) {
      File& kept = found->second;
      file = kept;
      if (kept.errors > 0) {
        --kept.errors;
        file = {.status = 503};
      } else if (kept.cut_after > 0 && kept.cuts-- <= 0) {
        file.cut_after = 0;
      }
    }
  }
  if (file.silent) {
    recv(connection, block, sizeof(block), 0);  // until the other side has had enough
    return;
  }
  if (!file.redirect.empty())
    return send_all(connection, "HTTP/1.1 302 Found\r\nLocation: " + file.redirect +
                                    "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  if (file.status != 200)
    return send_all(connection,
                    str("HTTP/1.1 ", file.status,
                        " No\r\nContent-Length: 10\r\nConnection: close\r\n\r\nno such fi"));
  if (from > 0 && file.ranges && from >= file.body.size())
    return send_all(connection,
                    "HTTP/1.1 416 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  if (!file.ranges) from = 0;
  const std::string rest = file.body.substr(from);
  std::string head = str("HTTP/1.1 ", from > 0 ? "206 Partial" : "200 OK",
                         "\r\nConnection: close\r\nContent-Length: ", rest.size(), "\r\n");
  if (from > 0)
    head += str("Content-Range: bytes ", from, "-", file.body.size() - 1, "/", file.body.size(),
                "\r\n");
  send_all(connection,
           head + "\r\n" + (file.cut_after > 0 ? rest.substr(0, file.cut_after) : rest));
}

}  // namespace fleetx::testing
