#include "fleetx/comm/tcp_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "fleetx/base/env.h"
#include "fleetx/base/error.h"

namespace fleetx::comm {
namespace {

struct Free {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

std::string tls_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
  const char* const text = ERR_reason_error_string(code);
  return text != nullptr ? text : "unknown error";
}

// The reason is asked for after the call has failed.
void check_read(const char* variable, const std::string& file, bool ok) {
  if (ok) return;
  const std::string why = tls_reason();
  fail(
      Error::Kind::kInvalidArgument,
      str(variable, ": '", file, "': ", why,
          why == "key values mismatch" ? " (this is not the key of the certificate FLEETX_TLS_CERT)"
                                       : ""));
}

// As BIO_s_socket, but a connection that is closed meanwhile is an error and no SIGPIPE.
int send_quietly(BIO* bio, const char* bytes, int count) {
  const auto n = send(BIO_get_fd(bio, nullptr), bytes, static_cast<size_t>(count), MSG_NOSIGNAL);
  BIO_clear_retry_flags(bio);
  if (n <= 0 && BIO_sock_should_retry(static_cast<int>(n)) != 0) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

BIO* quiet_socket(int fd) {
  static BIO_METHOD* const method = [] {
    const BIO_METHOD* const socket = BIO_s_socket();
    BIO_METHOD* const m = BIO_meth_new(BIO_TYPE_SOCKET, "socket without SIGPIPE");
    FLEETX_CHECK(m != nullptr, "TLS: ", tls_reason());
    BIO_meth_set_write(m, send_quietly);
    BIO_meth_set_read(m, BIO_meth_get_read(socket));
    BIO_meth_set_ctrl(m, BIO_meth_get_ctrl(socket));
    BIO_meth_set_create(m, BIO_meth_get_create(socket));
    BIO_meth_set_destroy(m, BIO_meth_get_destroy(socket));
    return m;
  }();
  BIO* const bio = BIO_new(method);
  if (bio != nullptr) BIO_set_fd(bio, fd, BIO_NOCLOSE);
  return bio;
}

class TlsChannel final : public Channel {
 public:
  TlsChannel(Fd fd, SSL_CTX* context, bool is_server) : Channel(std::move(fd)) {
    ssl_.reset(SSL_new(context));
    BIO* const socket = quiet_socket(this->fd());
    FLEETX_CHECK(ssl_ != nullptr && socket != nullptr, "TLS: ", tls_reason());
    SSL_set_bio(ssl_.get(), socket, socket);
    is_server ? SSL_set_accept_state(ssl_.get()) : SSL_set_connect_state(ssl_.get());
  }

  size_t read(std::span<const iovec> to) override {
    return move(to, [&](const iovec& part, size_t* n) {
      return SSL_read_ex(ssl_.get(), part.iov_base, part.iov_len, n);
    });
  }
  size_t write(std::span<const iovec> from) override {
    return move(from, [&](const iovec& part, size_t* n) {
      return SSL_write_ex(ssl_.get(), part.iov_base, part.iov_len, n);
    });
  }
  // OpenSSL may hold the begin of a record, so the socket may have fewer bytes to come.
  void wake_at(size_t) override {}
  bool has_decrypted() const override {
    const std::scoped_lock lock(mutex_);
    return SSL_has_pending(ssl_.get()) == 1;
  }
  std::string binding() const override {
    const std::scoped_lock lock(mutex_);
    std::string key(32, '\0');
    constexpr std::string_view kLabel = "EXPORTER-fleetx";
    FLEETX_CHECK(
        SSL_export_keying_material(ssl_.get(), reinterpret_cast<unsigned char*>(key.data()),
                                   key.size(), kLabel.data(), kLabel.size(), nullptr, 0, 0) == 1,
        "TLS: ", tls_reason());
    return key;
  }

 private:
  // One part after the other, until the socket has no more or takes no more.
  template <class Fn>
  size_t move(std::span<const iovec> parts, const Fn& fn) {
    const std::scoped_lock lock(mutex_);
    size_t moved = 0;
    for (iovec part : parts)
      while (part.iov_len > 0) {
        size_t n = 0;
        ERR_clear_error();
        errno = 0;
        const int result = fn(part, &n);
        if (result != 1) {
          if (moved == 0) check(SSL_get_error(ssl_.get(), result));
          return moved;  // an error is reported by the next call
        }
        agreed_ = true;
        moved += n;
        part = {static_cast<char*>(part.iov_base) + n, part.iov_len - n};
      }
    return moved;
  }

  void check(int error) const {
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return;
    if (error == SSL_ERROR_SYSCALL && errno != 0 && errno != ECONNRESET && errno != EPIPE)
      throw ConnectionLost(str("is not reachable: ", std::strerror(errno)), true);
    if (error == SSL_ERROR_SSL)
      if (const std::string why = tls_reason(); why.find("eof") == std::string::npos)
        throw OtherCertificates(str("does not agree on TLS: ", why, kCompareTls));
    throw ConnectionLost(agreed_
                             ? "closed its connection"
                             : str("closed its connection before it agreed on TLS", kCompareTls));
  }

  mutable std::mutex mutex_;  // what OpenSSL keeps of a connection belongs to one thread at a time
  std::unique_ptr<SSL, Free> ssl_;
  bool agreed_ = false;  // something was moved
};

class OpenSslContext final : public TlsContext {
 public:
  OpenSslContext(const std::string& certificate, const std::string& key,
                 const std::string& authority)
      : context_(SSL_CTX_new(TLS_method())) {
    SSL_CTX* const c = context_.get();
    FLEETX_CHECK(c != nullptr, "TLS: ", tls_reason());
    SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(c, 0);  // every connection is used for long
    check_read("FLEETX_TLS_CERT", certificate,
               SSL_CTX_use_certificate_chain_file(c, certificate.c_str()) == 1);
    check_read("FLEETX_TLS_KEY", key,
               SSL_CTX_use_PrivateKey_file(c, key.c_str(), SSL_FILETYPE_PEM) == 1 &&
                   SSL_CTX_check_private_key(c) == 1);
    check_read("FLEETX_TLS_CA", authority,
               SSL_CTX_load_verify_locations(c, authority.c_str(), nullptr) == 1);
  }

  std::unique_ptr<Channel> over(Fd socket, bool is_server) const override {
    return std::make_unique<TlsChannel>(std::move(socket), context_.get(), is_server);
  }

 private:
  std::unique_ptr<SSL_CTX, Free> context_;
};

}  // namespace

std::shared_ptr<const TlsContext> TlsContext::from_files(const std::string& certificate,
                                                         const std::string& key,
                                                         const std::string& authority) {
  return std::make_shared<OpenSslContext>(certificate, key, authority);
}

std::shared_ptr<const TlsContext> TlsContext::from_environment() {
  std::vector<std::string> files;
  std::string missing;
  for (const char* name : {"FLEETX_TLS_CERT", "FLEETX_TLS_KEY", "FLEETX_TLS_CA"}) {
    files.push_back(env::get(name).value_or(""));
    if (files.back().empty()) missing += str(missing.empty() ? "" : ", ", name);
  }
  if (files[0].empty() && files[1].empty() && files[2].empty()) return nullptr;
  check_arg(missing.empty(), "TLS between hosts needs all of FLEETX_TLS_CERT, FLEETX_TLS_KEY and ",
            "FLEETX_TLS_CA; not set: ", missing);
  return from_files(files[0], files[1], files[2]);
}

}  // namespace fleetx::comm
