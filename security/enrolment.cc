#include "security/enrolment.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/grpc_status.h"
#include "security/connection_failure.h"
#include "security/pki_folder.h"
#include "security/private_files.h"
#include "security/tls_directory.h"
#include "security/transport.h"
#include "terse/v1/enrolment.grpc.pb.h"

namespace terse {
namespace {

constexpr int kMaxReplyBytes = 1 << 16;

// The key of this or of a broken attempt. It is on disk before anybody signs a certificate for it.
absl::StatusOr<std::string> KeyIn(const PkiFolder& folder) {
  TERSE_ASSIGN_OR_RETURN(absl::optional<std::string> key, folder.Read(kKeyFile));
  if (key.has_value()) return *std::move(key);
  TERSE_ASSIGN_OR_RETURN(std::string made, MakeKey());
  std::vector<std::string> written;
  TERSE_RETURN_IF_ERROR(folder.Write(kKeyFile, made, &written));
  return made;
}

absl::StatusOr<std::string> Ask(const Invitation& invitation, const std::string& request, absl::Duration patience) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  const auto channel = grpc::CreateCustomChannel(invitation.address, ConnectAsGuest(invitation.authority), arguments);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
  context.set_wait_for_ready(false);
  v1::EnrolRequest message;
  message.set_secret(invitation.secret);
  message.set_request_pem(request);
  v1::EnrolReply reply;
  const absl::Status status = FromGrpc(v1::Enrolment::NewStub(channel)->Enrol(&context, message, &reply));
  // The desk's word for those whom it refused too often, and gRPC's where all its threads are at work.
  if (absl::IsResourceExhausted(status)) {
    return absl::UnavailableError(
        absl::StrCat("the authority at ", invitation.address, " is busy (", status.message(), "); try again"));
  }
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return absl::Status(
        status.code(),
        absl::StrCat("the authority at ", invitation.address, " does not answer (",
                     ConnectionFailureText(status.message(), Spoke::kTlsAsGuest),
                     "); `tersectl pki serve` must run there, with --host for the host of that address"));
  }
  if (!status.ok()) return Annotate(status, absl::StrCat("the authority at ", invitation.address));
  return reply.certificate_pem();
}

absl::StatusOr<CertificateFacts> CheckAnswer(const std::string& certificate, const std::string& key,
                                             const Identity& identity) {
  absl::StatusOr<CertificateFacts> facts = ReadCertificate(certificate);
  absl::Status good = facts.ok() ? CheckKeyPair(certificate, key) : facts.status();
  if (good.ok() && !(facts->identity == identity)) good = absl::InvalidArgumentError("it is for somebody else");
  if (!good.ok()) return absl::DataLossError(absl::StrCat("the authority's answer: ", good.message()));
  return facts;
}

}  // namespace

absl::StatusOr<Invitation> ReadInvitationFile(const std::string& path) {
  TERSE_ASSIGN_OR_RETURN(const std::string text, PosixFiles().Read(path, kMaxPemBytes));
  absl::StatusOr<Invitation> invitation = ReadInvitation(text);
  if (!invitation.ok()) return Annotate(invitation.status(), path);
  return invitation;
}

absl::StatusOr<CertificateFacts> Enrol(const std::string& folder_path, const Invitation& invitation,
                                       const std::string& name, absl::Duration patience) {
  const PkiFolder folder(folder_path);
  const Identity identity = {Role::kClient, name};
  TERSE_ASSIGN_OR_RETURN(const absl::optional<CertificateFacts> old, folder.CertificateOf(identity));
  if (old.has_value()) {
    return absl::AlreadyExistsError(
        absl::StrCat(folder.PathOf(kCertificateFile), " is there already; name another folder"));
  }
  TERSE_RETURN_IF_ERROR(folder.CheckAuthority(invitation.authority));
  TERSE_RETURN_IF_ERROR(folder.Prepare());
  TERSE_ASSIGN_OR_RETURN(const std::string key, KeyIn(folder));
  TERSE_ASSIGN_OR_RETURN(const std::string request, MakeRequest({identity, {}}, key));
  TERSE_ASSIGN_OR_RETURN(const std::string certificate, Ask(invitation, request, patience));
  TERSE_ASSIGN_OR_RETURN(CertificateFacts facts, CheckAnswer(certificate, key, identity));
  std::vector<std::string> written;
  TERSE_RETURN_IF_ERROR(folder.Write(kAuthorityFile, invitation.authority, &written));
  TERSE_RETURN_IF_ERROR(folder.Write(kCertificateFile, certificate, &written));
  return facts;
}

}  // namespace terse
