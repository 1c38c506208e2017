#include "tersectl/pki_group.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/cli/checks.h"
#include "core/host_port.h"
#include "security/identity.h"
#include "security/invitation_book.h"
#include "tersectl/enrolment_commands.h"
#include "tersectl/pki_commands.h"
#include "tersectl/pki_lists.h"

namespace terse {
namespace {

CLI::Validator ARole() {
  std::vector<std::string> names;
  for (const Role role : AllRoles()) names.emplace_back(RoleName(role));
  return OneOf(std::move(names));
}

// An option that may be given several times.
void AddList(CLI::App* command, const char* name, std::vector<std::string>* list, const char* help) {
  command->add_option(name, *list, help)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Adds the options that say for whom a certificate is.
void AddSubject(CLI::App* command, SubjectOptions* options) {
  command->add_option("ROLE", options->role, "coordinator, client, relay, observer or operator")
      ->required()
      ->check(ARole());
  command->add_option("NAME", options->name, "Its name; that of a client or relay is its name in runs")->required();
  AddList(command, "--host", &options->hosts,
          "DNS name or IP address under which a coordinator or relay is reached; repeatable");
  command->add_flag("--renew", options->renew, "Keep the key that is in the folder");
}

void AddDays(CLI::App* command, int64_t* days) {
  command->add_option("--days", *days, "Days that it is valid")->check(WholeNumber(1, 36500))->capture_default_str();
}

void AddInvite(CLI::App& pki, Invocation* invocation) {
  const auto [invite, options] =
      AddLocal(pki, "invite", "Let clients enrol themselves, with a file", InviteClients, invocation);
  invite->add_option("--address", options->address, "host:port where they reach `serve`")
      ->required()
      ->check(DialAddress());
  invite->add_option("--out", options->out, "The file to write: give it to the devices, and to nobody else")
      ->required();
  invite->add_option("--guests", options->guests, "How many clients may come by it")
      ->check(WholeNumber(1, kMostGuests))
      ->capture_default_str();
  invite->add_option("--hours", options->open_hours, "How long they may come")
      ->check(Number(0.01, 87600.0))
      ->capture_default_str();
  AddList(invite, "--names", &options->patterns,
          "Pattern of their names, where * is any text; repeatable; default: any");
  AddDays(invite, &options->days);
}

void AddEnrolment(CLI::App& pki, Invocation* invocation) {
  AddInvite(pki, invocation);
  const auto [list, listed] =
      AddLocal(pki, "invitations", "The invitations, and how many came by them", ListInvitations, invocation);
  AddListOptions(list, &listed->list, InvitationList(absl::Now()).Heads());
  const auto [withdraw, taken] =
      AddLocal(pki, "withdraw", "Let nobody more come by an invitation", WithdrawInvitation, invocation);
  withdraw->add_option("ID", taken->invitation, "As `invitations` lists it")->required();
  const auto [serve, desk] =
      AddLocal(pki, "serve", "Answer those who have an invitation, until Ctrl-C", ServeEnrolment, invocation);
  serve->add_option("--listen", desk->listen, "Address to listen on")->check(ListenAddress())->capture_default_str();
  AddList(serve, "--host", &desk->hosts, "DNS name or IP address under which devices reach it; repeatable");
  const auto [enrol, device] =
      AddLocal(pki, "enrol", "On a device: a key, and a certificate by invitation", EnrolDevice, invocation);
  enrol->add_option("NAME", device->name, "The client's name")->required();
  enrol->add_option("--invitation", device->invitation, "The file that `invite` wrote")->required();
  enrol->add_option("--out", device->out, "TLS folder to write to")->required();
}

void AddCertificates(CLI::App& pki, Invocation* invocation) {
  const auto [issue, issued] = AddLocal(pki, "issue", "Make a key and its certificate", IssueCertificate, invocation);
  AddSubject(issue, issued);
  AddDays(issue, &issued->days);
  issue->add_option("--out", issued->out, "TLS folder to write to")->required();
  const auto [request, wanted] =
      AddLocal(pki, "request", "Make a key here and a request for the authority", RequestCertificate, invocation);
  AddSubject(request, wanted);
  request->add_option("--out", wanted->out, "TLS folder to write to")->required();
  const auto [sign, options] = AddLocal(pki, "sign", "Sign a request that `request` made", SignRequest, invocation);
  sign->add_option("FILE", options->request, "The request")->required();
  AddDays(sign, &options->days);
  sign->add_option("--role", options->role, "The role that it asks for; needed for others than clients")
      ->check(ARole());
  sign->add_option("--out", options->out, "Folder to write to")->required();
  const auto [revoke, revoked] = AddLocal(pki, "revoke", "Take certificates back", RevokeCertificates, invocation);
  revoke->add_option("SERIAL|NAME", revoked->name, "One certificate, or all valid ones of a name")->required();
  AddList(revoke, "--into", &revoked->into,
          "TLS folder of a coordinator or relay, which gets the new list; repeatable");
  const auto [list, listed] = AddLocal(pki, "list", "The certificates that were issued", ListCertificates, invocation);
  list->add_flag("--revoked", listed->revoked, "Only those that were taken back");
  AddListOptions(list, &listed->list, CertificateList(absl::Now()).Heads());
}

}  // namespace

void AddPki(CLI::App& program, Invocation* invocation) {
  CLI::App* pki = program.add_subcommand("pki", "The fleet's certificates (docs/SECURITY.md)");
  pki->require_subcommand(1);
  pki->add_option("--pki", invocation->options.authority, "The authority's folder")->capture_default_str();
  const auto [init, options] = AddLocal(*pki, "init", "Make an authority", InitAuthority, invocation);
  init->add_option("--name", options->name, "Its name")->capture_default_str();
  AddDays(init, &options->days);
  AddCertificates(*pki, invocation);
  AddEnrolment(*pki, invocation);
}

}  // namespace terse
