// Helpers that the tests of certificates share: files, OpenSSL's command line as an independent opinion, PEM with
// changed bytes.
#ifndef TERSE_TESTS_SECURITY_SECURITY_TESTING_H_
#define TERSE_TESTS_SECURITY_SECURITY_TESTING_H_

#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "security/authority.h"
#include "security/certificate.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/paths.h"
#include "tests/testing/temp_directory.h"

namespace terse {

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  ASSERT_TRUE(file.flush().good()) << path;
}

inline std::string Golden(const std::string& name) { return ReadFile(InSource("tests/golden/" + name)); }

struct CommandResult {
  int code = -1;
  std::string output;  // with what went to standard error
};

inline CommandResult Shell(const std::string& command) {
  CommandResult result;
  FILE* const pipe = popen(absl::StrCat("( ", command, " ) </dev/null 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  char block[4096];
  while (const size_t got = fread(block, 1, sizeof(block), pipe)) result.output.append(block, got);
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

inline std::string DerOf(const std::string& pem) {
  const size_t begin = pem.find('\n') + 1, end = pem.find("-----END");
  std::string der;
  EXPECT_TRUE(absl::Base64Unescape(absl::StrReplaceAll(pem.substr(begin, end - begin), {{"\n", ""}}), &der));
  return der;
}

inline std::string PemOf(const std::string& label, const std::string& der) {
  const std::string text = absl::Base64Escape(der);
  std::string pem = absl::StrCat("-----BEGIN ", label, "-----\n");
  for (size_t at = 0; at < text.size(); at += 64) absl::StrAppend(&pem, text.substr(at, 64), "\n");
  return absl::StrCat(pem, "-----END ", label, "-----\n");
}

// Makes certificates with Terse's own means, in a folder and at a time of its own.
class AuthorityTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kLong = absl::Hours(24 * 3650);
  static constexpr absl::Duration kYear = absl::Hours(24 * 365);

  std::string PathOf(const std::string& name) const { return absl::StrCat(directory_.path(), "/", name); }
  absl::Time Now() { return absl::FromUnixMicros(clock_.NowMicros()); }

  std::unique_ptr<Authority> NewAuthority(const std::string& folder = "pki") {
    auto authority = Authority::Create(PathOf(folder), "test", kLong, &clock_);
    EXPECT_TRUE(authority.ok()) << authority.status();
    return authority.ok() ? *std::move(authority) : nullptr;
  }

  static std::string NewKey() {
    auto key = MakeKey();
    EXPECT_TRUE(key.ok()) << key.status();
    return key.value_or("");
  }

  static std::string NewRequest(Role role, const std::string& name, const std::string& key) {
    CertificateRequest request{{role, name}, {}};
    if (Serves(role)) request.hosts = {"localhost", "127.0.0.1"};
    auto made = MakeRequest(request, key);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or("");
  }

  static std::string Issue(Authority& authority, Role role, const std::string& name, const std::string& key,
                           absl::Duration lifetime = kYear) {
    auto certificate = authority.Issue(NewRequest(role, name, key), lifetime);
    EXPECT_TRUE(certificate.ok()) << certificate.status();
    return certificate.value_or("");
  }

  static std::string Issue(Authority& authority, Role role, const std::string& name) {
    return Issue(authority, role, name, NewKey());
  }

  static std::string SerialOf(const std::string& certificate) {
    auto facts = ReadCertificate(certificate);
    EXPECT_TRUE(facts.ok()) << facts.status();
    return facts.ok() ? facts->serial : "";
  }

  TempDirectory directory_;
  FakeClock clock_;
};

}  // namespace terse

#endif  // TERSE_TESTS_SECURITY_SECURITY_TESTING_H_
