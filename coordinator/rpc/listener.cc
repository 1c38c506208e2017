#include "coordinator/rpc/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/log_components.h"
#include "core/log/log.h"
#include "core/status.h"
#include "proto/channel_settings.h"

namespace terse {
namespace {

// sun_path of the kernel's sockaddr_un, with its end.
constexpr size_t kMaxSocketPath = 107;
// With 10 s each way the handshakes need some 60.
constexpr ConnectionPatience kConnectionPatience = {absl::Seconds(90), absl::Minutes(10)};

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

absl::Status CannotListen(const ListenOptions& options, absl::string_view reason) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", options.address, ": ", reason, "; choose another with ", options.option));
}

void SetOptions(const ListenOptions& options, grpc::ServerBuilder* builder) {
  SetFleetServerOptions(builder, options.keepalive_seconds);
  if (options.gatekeeper == nullptr) return;
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> books;
  books.push_back(MakeCallBook(options.gatekeeper));
  builder->experimental().SetInterceptorCreators(std::move(books));
}

absl::StatusOr<Listener> ListenOnSocket(const ListenOptions& options, grpc::ServerBuilder* builder,
                                        std::shared_ptr<grpc::ServerCredentials> credentials) {
  TERSE_RETURN_IF_ERROR(CheckSocket(options));
  SetPatience(kConnectionPatience, builder);
  builder->AddListeningPort(options.address, std::move(credentials));
  const OwnerOnly owner_only;
  Listener listener{builder->BuildAndStart(), options.address, nullptr};
  if (listener.server == nullptr) return CannotListen(options, "its folder must exist and be this user's");
  return listener;
}

absl::StatusOr<Listener> ListenOnTcp(const ListenOptions& options, grpc::ServerBuilder* builder,
                                     std::shared_ptr<grpc::ServerCredentials> credentials) {
  Acceptor::Options acceptor{options.address, options.bounds, options.bounds_option, options.accepted};
  acceptor.log = [](LogLevel level, absl::string_view line) { Log(level, kServerLog, {}, line); };
  const std::shared_ptr<TlsConnections> connections =
      options.gatekeeper == nullptr ? nullptr : options.gatekeeper->connections();
  absl::StatusOr<TcpServer> server =
      ServeTcp(acceptor, kConnectionPatience, std::move(credentials), connections, builder);
  if (!server.ok() && !absl::IsInternal(server.status())) return CannotListen(options, server.status().message());
  return server;
}

}  // namespace

absl::StatusOr<Listener> Listen(const ListenOptions& options, grpc::Service* service) {
  const std::shared_ptr<Gatekeeper>& gatekeeper = options.gatekeeper;
  TERSE_ASSIGN_OR_RETURN(
      std::shared_ptr<grpc::ServerCredentials> credentials,
      ListenWith(options.address, options.insecure, gatekeeper == nullptr ? nullptr : gatekeeper->files(),
                 [gatekeeper](absl::string_view certificate, absl::string_view method) {
                   return gatekeeper->Check(certificate, method);
                 }));
  grpc::ServerBuilder builder;
  SetOptions(options, &builder);
  if (service != nullptr) builder.RegisterService(service);
  if (options.generic != nullptr) builder.RegisterCallbackGenericService(options.generic);
  return IsUnixSocket(options.address) ? ListenOnSocket(options, &builder, std::move(credentials))
                                       : ListenOnTcp(options, &builder, std::move(credentials));
}

}  // namespace terse
