// Socket addresses for the tests of net/.
#ifndef TERSE_TESTS_NET_ADDRESS_H_
#define TERSE_TESTS_NET_ADDRESS_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>

namespace terse {

// `text`: an address of IPv4 or IPv6.
inline sockaddr_storage Address(const std::string& text, int port = 0) {
  sockaddr_storage address = {};
  if (text.find(':') == std::string::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &v4.sin_addr), 1) << text;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1) << text;
  }
  return address;
}

}  // namespace terse

#endif  // TERSE_TESTS_NET_ADDRESS_H_
