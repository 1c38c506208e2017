#include "coordinator/rpc/listener.h"

#include <sys/stat.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status.h"
#include "proto/channel_settings.h"

namespace terse {
namespace {

// sun_path of the kernel's sockaddr_un, with its end.
constexpr size_t kMaxSocketPath = 107;

// While it lives, new files are their owner's alone. For the start of a process, when no other thread makes files.
class OwnerOnly {
 public:
  OwnerOnly() : before_(umask(0177)) {}
  ~OwnerOnly() { umask(before_); }

 private:
  const mode_t before_;
};

absl::Status CheckSocketPath(const ListenOptions& options) {
  if (!IsUnixSocket(options.address)) return absl::OkStatus();
  const absl::string_view path = absl::StripPrefix(options.address, "unix:");
  if (!path.empty() && path.size() <= kMaxSocketPath) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the path of the Unix socket ", options.address, " must have 1 to ",
                                                 kMaxSocketPath, " bytes; choose another with ", options.option));
}

absl::Status CannotListen(const ListenOptions& options) {
  return absl::UnavailableError(
      IsUnixSocket(options.address)
          ? absl::StrCat("cannot listen on ", options.address,
                         ": its folder must exist and be this user's; choose another with ", options.option)
          : absl::StrCat("cannot listen on ", options.address,
                         ": the port is in use or the address is not this machine's; choose another with ",
                         options.option));
}

}  // namespace

absl::StatusOr<Listener> Listen(const ListenOptions& options, grpc::Service* service) {
  TERSE_RETURN_IF_ERROR(CheckSocketPath(options));
  const auto check = options.gatekeeper == nullptr ? nullptr : MakeCallCheck(options.gatekeeper);
  TERSE_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                         ListenWith(options.transport, options.address, check));
  grpc::ServerBuilder builder;
  SetFleetServerOptions(&builder, options.keepalive_seconds);
  int port = 0;
  builder.AddListeningPort(options.address, credentials, &port);
  builder.RegisterService(service);
  if (options.gatekeeper != nullptr) {
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> books;
    books.push_back(MakeCallBook(options.gatekeeper));
    builder.experimental().SetInterceptorCreators(std::move(books));
  }
  Listener listener;
  {
    const OwnerOnly owner_only;
    listener.server = builder.BuildAndStart();
  }
  if (listener.server == nullptr || port == 0) return CannotListen(options);
  listener.address = IsUnixSocket(options.address)
                         ? options.address
                         : absl::StrCat(options.address.substr(0, options.address.rfind(':')), ":", port);
  return listener;
}

}  // namespace terse
