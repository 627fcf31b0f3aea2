#include "fleetx/launch/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "fleetx/base/error.h"
#include "fleetx/base/job_env.h"
#include "fleetx/base/names.h"

namespace fleetx::launch {
namespace {

std::string text_of(const in_addr& address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

std::string host_address(std::string_view flag, const std::string& host, const Resolve& resolve) {
  check_arg(!host.empty(), flag, ": an address is empty; write for example 10.0.0.1");
  if (is_ipv4(host)) return host;
  const bool digits = host.find_first_not_of("0123456789.") == std::string::npos;
  check_arg(!digits, flag, ": '", host, "' is not an IPv4 address; write for example 10.0.0.1");
  const bool plain = host.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789.-_") == std::string::npos;
  check_arg(plain, flag, ": '", host, "' is neither an IPv4 address nor the name of a host");
  const auto ip = resolve(host);
  check_arg(ip.has_value(), flag, ": there is no host '", host,
            "'; write its IPv4 address, or a name that resolves on every machine");
  return *ip;
}

int port_number(std::string_view flag, const std::string& entry, const std::string& text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  check_arg(error == std::errc{} && end == text.data() + text.size() && port > 0 && port < 65536,
            flag, ": '", entry, "' has no port from 1 to 65535 after its ':'");
  return port;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) { return str(endpoint.ip, ":", endpoint.port); }

std::string to_csv(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> parts;
  for (const Endpoint& endpoint : endpoints) parts.push_back(to_string(endpoint));
  return join(parts, ",");
}

std::vector<Endpoint> parse_endpoints(std::string_view flag, std::string_view text, Port port,
                                      const Resolve& resolve) {
  std::vector<Endpoint> endpoints;
  for (const std::string& entry : split_list(text)) {
    const size_t colon = entry.find(':');
    const bool has_port = colon != std::string::npos;
    check_arg(entry.find("://") == std::string::npos, flag, ": '", entry,
              "' is a URL, which is not supported; write an address, as in 10.0.0.1:6170");
    check_arg(std::ranges::count(entry, ':') < 2, flag, ": '", entry,
              "' looks like IPv6, which is not supported; give an IPv4 address, as in 10.0.0.1");
    check_arg(!has_port || port != Port::kNone, flag, ": '", entry,
              "' has a port; give addresses only, as in ", flag, "=10.0.0.1,10.0.0.2");
    check_arg(has_port || port != Port::kRequired, flag, ": '", entry,
              "' has no port; write for example ", entry.empty() ? "10.0.0.1" : entry, ":6170");
    Endpoint endpoint{host_address(flag, entry.substr(0, colon), resolve), 0};
    if (has_port) endpoint.port = port_number(flag, entry, entry.substr(colon + 1));
    // The same machine may have several workers; only their ports must differ.
    const bool twice = std::ranges::count(endpoints, endpoint) > 0;
    check_arg(!twice || (port == Port::kOptional && !has_port), flag, ": '", entry,
              "' is there twice; each entry must be another process");
    endpoints.push_back(endpoint);
  }
  check_arg(!endpoints.empty(), flag, " is empty; give at least one address");
  return endpoints;
}

bool is_loopback(std::string_view ip) { return ip.starts_with("127."); }

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

std::optional<std::string> resolve_by_system(const std::string& name) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  const std::string ip = text_of(reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr);
  freeaddrinfo(found);
  return ip;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET)
      addresses.push_back(text_of(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr));
  freeifaddrs(all);
  return addresses;
}

std::string own_host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string own_address_towards(const Endpoint& other) {
  // Connecting a datagram socket sends nothing; it only selects the route.
  const int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(other.port));
  inet_pton(AF_INET, other.ip.c_str(), &address.sin_addr);
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  const bool found = connect(probe, raw, length) == 0 && getsockname(probe, raw, &length) == 0;
  close(probe);
  check_arg(found, "no route from this machine to ", other.ip,
            "; check the address and the network");
  return text_of(address.sin_addr);
}

}  // namespace fleetx::launch
