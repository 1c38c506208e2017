#include "tersectl/pki_lists.h"

#include "absl/strings/str_join.h"
#include "tersectl/pki_print.h"

namespace terse {
namespace {

using Kind = ColumnKind;
using Use = ColumnUse;

ListCell LeftCell(absl::Duration left) {
  return left <= absl::ZeroDuration() ? UnknownCell() : ListCell{LeftText(left), absl::ToDoubleSeconds(left)};
}

ListCell PointCell(absl::Time time) { return TimeCell(absl::ToUnixMicros(time)); }

}  // namespace

absl::string_view StateOf(const IssuedCertificate& one, absl::Time now) {
  if (one.revoked.has_value()) return "revoked";
  return one.facts.not_after < now ? "expired" : "valid";
}

std::string NamesText(const InvitationTerms& terms) {
  return terms.names.empty() ? "any" : absl::StrJoin(terms.names, " ");
}

List<IssuedCertificate> CertificateList(absl::Time now) {
  using R = const IssuedCertificate&;
  return {
      "certificate",
      "there are no such certificates",
      {{"role", Kind::kText, [](R one) { return TextCell(std::string(RoleName(one.facts.identity.role))); }},
       {"name", Kind::kText, [](R one) { return TextCell(one.facts.identity.name); }},
       {"serial", Kind::kText, [](R one) { return TextCell(one.facts.serial); }},
       {"expires_in", Kind::kSeconds, [now](R one) { return LeftCell(one.facts.not_after - now); }},
       {"state", Kind::kText, [now](R one) { return TextCell(std::string(StateOf(one, now))); }},
       {"issued", Kind::kTime, [](R one) { return PointCell(one.facts.not_before); }, Use::kWide},
       {"expires", Kind::kTime, [](R one) { return PointCell(one.facts.not_after); }, Use::kWide},
       {"revoked", Kind::kTime, [](R one) { return one.revoked.has_value() ? PointCell(*one.revoked) : UnknownCell(); },
        Use::kWide},
       {"hosts", Kind::kText, [](R one) { return TextCell(absl::StrJoin(one.facts.hosts, " ")); }, Use::kWideText}}};
}

List<InvitationRecord> InvitationList(absl::Time now) {
  using R = const InvitationRecord&;
  return {"invitation",
          "there are no invitations; `tersectl pki invite` makes one",
          {{"invitation", Kind::kText, [](R one) { return TextCell(one.id); }},
           {"names", Kind::kText, [](R one) { return TextCell(NamesText(one.terms)); }, Use::kUsualText},
           {"came", Kind::kNumber, [](R one) { return CountCell(one.keys.size()); }},
           {"of", Kind::kNumber, [](R one) { return CountCell(static_cast<uint64_t>(one.terms.guests)); }},
           {"open_for", Kind::kSeconds, [now](R one) { return LeftCell(one.until - now); }},
           {"until", Kind::kTime, [](R one) { return PointCell(one.until); }, Use::kWide}}};
}

}  // namespace terse
