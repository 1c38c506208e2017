#include "simulation/client_host.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/log_components.h"
#include "core/file_system.h"
#include "core/log/log.h"
#include "core/status.h"

namespace terse {
namespace {

// How often a wait looks whether the process should stop.
constexpr absl::Duration kStopCheck = absl::Milliseconds(200);

}  // namespace

std::string SimulatedClientName(int64_t number) { return absl::StrFormat("client-%06d", number); }

ClientHost::ClientHost(Options options) : options_(std::move(options)), clients_(options_.count) {}

ClientHost::~ClientHost() {
  for (Client& client : clients_) {
    if (client.link != nullptr) client.link->Cancel();
  }
  while (links_ > 0) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &ClientHost::HasArrival));
    links_ -= arrivals_.front().message.ok() ? 0 : 1;
    arrivals_.pop_front();
  }
}

const std::string& ClientHost::CoordinatorOf(int64_t number) const {
  const auto parts = static_cast<int64_t>(options_.coordinators.size());
  return options_.coordinators[number * parts / options_.fleet];
}

absl::Status ClientHost::Begin(int64_t place) {
  Client& client = clients_[place];
  const std::string name = SimulatedClientName(options_.first + place);
  TERSE_ASSIGN_OR_RETURN(client.state, ClientState::Open(FilePath(options_.directory, name), UnsyncedFiles()));
  ClientSession::Options session;
  session.name = name;
  session.run = options_.run;
  session.process = Id128::Random();
  session.state = client.state.get();
  session.make_trainer = options_.make_trainer;
  session.allow_models = options_.allow_models;
  session.clock = &clock_;
  session.keep_going = [stopping = options_.stopping] { return !stopping->load(); };
  session.log = [name](LogLevel level, const LogFields& about, const std::string& line) {
    Log(level, kClientSessionLog, {about.run, about.round, name}, line);
  };
  session.shared_models = &models_;
  client.session = std::make_unique<ClientSession>(std::move(session));
  const auto on_arrival = [this, place](absl::StatusOr<FromServer> message) {
    absl::MutexLock lock(&mutex_);
    arrivals_.push_back({place, std::move(message)});
  };
  TERSE_ASSIGN_OR_RETURN(client.link, StreamLink::Start(CoordinatorOf(options_.first + place), &downloads_,
                                                        options_.stopping, on_arrival));
  ++links_;
  return client.session->Start(client.link.get());
}

absl::Status ClientHost::Join(const std::function<void()>& on_joined) {
  for (int64_t place = 0; place < options_.count; ++place) {
    Client& client = clients_[place];
    TERSE_RETURN_IF_ERROR(Annotate(Begin(place), SimulatedClientName(options_.first + place)));
    while (!client.over && !client.session->joined()) TERSE_RETURN_IF_ERROR(HandleNext());
    on_joined();
  }
  return absl::OkStatus();
}

absl::Status ClientHost::Serve() {
  while (links_ > 0) TERSE_RETURN_IF_ERROR(HandleNext());
  return absl::OkStatus();
}

absl::Status ClientHost::HandleNext() {
  TERSE_ASSIGN_OR_RETURN(Arrival arrival, Await());
  const int64_t number = options_.first + arrival.client;
  return Annotate(Handle(std::move(arrival)), SimulatedClientName(number));
}

absl::Status ClientHost::Handle(Arrival arrival) {
  Client& client = clients_[arrival.client];
  if (!arrival.message.ok()) {
    --links_;
    client.link = nullptr;
    return client.over ? absl::OkStatus() : arrival.message.status();
  }
  if (client.over) return absl::OkStatus();
  const absl::optional<absl::Status> end = client.session->Take(client.link.get(), *arrival.message);
  client.session->Rest();
  if (!end.has_value()) return absl::OkStatus();
  client.over = true;
  client.link->Close();
  return *end;
}

absl::StatusOr<ClientHost::Arrival> ClientHost::Await() {
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(this, &ClientHost::HasArrival), kStopCheck)) {
    if (options_.stopping->load()) return absl::CancelledError("stopped");
  }
  if (options_.stopping->load()) return absl::CancelledError("stopped");
  Arrival arrival = std::move(arrivals_.front());
  arrivals_.pop_front();
  return arrival;
}

}  // namespace terse
