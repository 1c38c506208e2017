#include "coordinator/rpc/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "core/status.h"
#include "proto/channel_settings.h"

namespace terse {
namespace {

// sun_path of the kernel's sockaddr_un, with its end.
constexpr size_t kMaxSocketPath = 107;
// A connection without a call.
constexpr int kMaxIdleMilliseconds = 600'000;

// While it lives, new files are their owner's alone. For the start of a process, when no other thread makes files.
class OwnerOnly {
 public:
  OwnerOnly() : before_(umask(0177)) {}
  ~OwnerOnly() { umask(before_); }
  OwnerOnly(const OwnerOnly&) = delete;
  OwnerOnly& operator=(const OwnerOnly&) = delete;

 private:
  const mode_t before_;
};

// Whether a process listens there: gRPC would take its name away.
bool IsInUse(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kMaxSocketPath);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool answers = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return answers;
}

absl::Status CheckSocket(const ListenOptions& options) {
  TERSE_ASSIGN_OR_RETURN(const std::string path, UnixSocketPath(options.address));
  if (path.empty() || path.size() > kMaxSocketPath) {
    return absl::InvalidArgumentError(absl::StrCat("the path of the Unix socket ", options.address, " must have 1 to ",
                                                   kMaxSocketPath, " bytes; choose another with ", options.option));
  }
  if (!IsInUse(path)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("another process listens on ", options.address, "; stop it, or choose ",
                                             "another with ", options.option));
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
  const bool is_socket = IsUnixSocket(options.address);
  if (is_socket) TERSE_RETURN_IF_ERROR(CheckSocket(options));
  const std::shared_ptr<Gatekeeper>& gatekeeper = options.gatekeeper;
  TERSE_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ServerCredentials> credentials,
      ListenWith(options.address, options.insecure, gatekeeper == nullptr ? nullptr : gatekeeper->files(),
                 [gatekeeper](absl::string_view certificate, absl::string_view method) {
                   return gatekeeper->Check(certificate, method);
                 }));
  grpc::ServerBuilder builder;
  SetFleetServerOptions(&builder, options.keepalive_seconds);
  // Of those that may not call anything any more, too.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMilliseconds);
  int port = 0;
  builder.AddListeningPort(options.address, credentials, &port);
  builder.RegisterService(service);
  if (gatekeeper != nullptr) {
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> books;
    books.push_back(MakeCallBook(gatekeeper));
    builder.experimental().SetInterceptorCreators(std::move(books));
  }
  Listener listener;
  {
    absl::optional<OwnerOnly> owner_only;
    if (is_socket) owner_only.emplace();
    listener.server = builder.BuildAndStart();
  }
  if (listener.server == nullptr || port == 0) return CannotListen(options);
  listener.address =
      is_socket ? options.address : absl::StrCat(options.address.substr(0, options.address.rfind(':')), ":", port);
  return listener;
}

}  // namespace terse
