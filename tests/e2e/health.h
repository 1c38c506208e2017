// Asks a server's grpc.health.v1.Health, as a load balancer would.
#ifndef TERSE_TESTS_E2E_HEALTH_H_
#define TERSE_TESTS_E2E_HEALTH_H_

#include <chrono>
#include <memory>
#include <string>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace terse {

enum class Health { kNoAnswer = -1, kUnknown = 0, kServing = 1, kNotServing = 2 };

// `service` is empty for the whole server.
inline Health HealthOf(const std::string& address, const std::string& service) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  // HealthCheckRequest: field 1 is the service's name.
  grpc::Slice name(service.empty() ? service : "\x0a" + std::string(1, static_cast<char>(service.size())) + service);
  grpc::ByteBuffer request(&name, 1), reply;
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  grpc::Slice slice;
  if (!ok || !status.ok() || !reply.DumpToSingleSlice(&slice).ok()) return Health::kNoAnswer;
  // HealthCheckResponse: field 1 is the status; 0 is left out.
  return slice.size() == 2 ? static_cast<Health>(slice.begin()[1]) : Health::kUnknown;
}

}  // namespace terse

#endif  // TERSE_TESTS_E2E_HEALTH_H_
