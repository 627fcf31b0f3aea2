// Addresses as users write them: "10.0.0.1,10.0.0.2" and "10.0.0.1:6170,10.0.0.2:6171". A host is
// an IPv4 address or a name that resolves to one. Errors name the flag and the part that is wrong.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetx::launch {

struct Endpoint {
  std::string ip;
  int port = 0;  // 0: chosen by binding
  bool operator==(const Endpoint&) const = default;
};
std::string to_string(const Endpoint& endpoint);
std::string to_csv(const std::vector<Endpoint>& endpoints);

// Resolves a name to an IPv4 address.
using Resolve = std::function<std::optional<std::string>(const std::string& name)>;

enum class Port { kNone, kRequired, kOptional };

// No part is empty, no entry occurs twice. `flag` ("--ips") is named in errors.
std::vector<Endpoint> parse_endpoints(std::string_view flag, std::string_view text, Port port,
                                      const Resolve& resolve);

bool is_loopback(std::string_view ip);
bool is_ipv4(const std::string& text);

// Facts of this machine.
std::optional<std::string> resolve_by_system(const std::string& name);
std::vector<std::string> own_addresses();  // IPv4, of all interfaces
std::string own_host_name();
// The local address of the route to `other`.
std::string own_address_towards(const Endpoint& other);

}  // namespace fleetx::launch
