// The least that a client on gRPC takes: one cleartext channel with one stream that stays open until the process is
// ended, and nothing of Terse. bench/client_memory.py compares terse-client with it.
//
// usage: terse-empty-client HOST:PORT
#include <unistd.h>

#include <cstdio>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: terse-empty-client HOST:PORT\n");
    return 2;
  }
  grpc::GenericStub stub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  grpc::CompletionQueue queue;
  const auto stream = stub.PrepareCall(&context, "/terse.v1.Fleet/Session", &queue);
  stream->StartCall(nullptr);
  void* tag = nullptr;
  bool ok = false;
  if (!queue.Next(&tag, &ok) || !ok) {
    std::fprintf(stderr, "terse-empty-client: no stream to %s\n", argv[1]);
    return 1;
  }
  std::printf("open\n");
  std::fflush(stdout);
  pause();
  return 0;
}
