#include "security/server_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

namespace terse {
namespace {

// The state of gRPC's callbacks. gRPC destroys it with the credentials.
struct State {
  std::shared_ptr<const LiveTlsDirectory> files;
  CallCheck check;
  std::atomic<int64_t> served{0};  // generation of the files that gRPC has
};

grpc_ssl_certificate_config_reload_status FetchFiles(void* user_data, grpc_ssl_server_certificate_config** config) {
  auto* const state = static_cast<State*>(user_data);
  const int64_t generation = state->files->generation();
  if (state->served.exchange(generation) == generation) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const TlsDirectory files = state->files->Files();
  const grpc_ssl_pem_key_cert_pair pair = {files.key_pem.c_str(), files.certificate_pem.c_str()};
  *config = grpc_ssl_server_certificate_config_create(files.authority_pem.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

absl::string_view View(const grpc_slice& slice) {
  return absl::string_view(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice));
}

absl::string_view MethodOf(const grpc_metadata* metadata, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (View(metadata[i].key) == ":path") return View(metadata[i].value);
  }
  return absl::string_view();
}

absl::string_view CertificateOf(const grpc_auth_context* context) {
  grpc_auth_property_iterator found =
      grpc_auth_context_find_properties_by_name(context, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  const grpc_auth_property* const property = grpc_auth_property_iterator_next(&found);
  return property == nullptr ? absl::string_view() : absl::string_view(property->value, property->value_length);
}

void CheckCall(void* user_data, grpc_auth_context* context, const grpc_metadata* metadata, size_t count,
               grpc_process_auth_metadata_done_cb done, void* done_data) {
  const auto* const state = static_cast<const State*>(user_data);
  const absl::Status status = state->check(CertificateOf(context), MethodOf(metadata, count));
  done(done_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
       status.ok() ? nullptr : std::string(status.message()).c_str());
}

void Destroy(void* state) { delete static_cast<State*>(state); }

class LiveServerCredentials : public grpc::ServerCredentials {
 public:
  explicit LiveServerCredentials(std::unique_ptr<State> state) {
    State* const owned = state.release();
    credentials_ =
        grpc_ssl_server_credentials_create_with_options(grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, FetchFiles, owned));
    grpc_server_credentials_set_auth_metadata_processor(credentials_, {CheckCall, Destroy, owned});
  }
  ~LiveServerCredentials() override { grpc_server_credentials_release(credentials_); }

  // The call check is given at construction.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    GPR_ASSERT(false && "these credentials have a check of their own");
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeLiveServerCredentials(std::shared_ptr<const LiveTlsDirectory> files,
                                                                   CallCheck check) {
  auto state = std::make_unique<State>();
  state->files = std::move(files);
  state->check = std::move(check);
  return std::make_shared<LiveServerCredentials>(std::move(state));
}

}  // namespace terse
