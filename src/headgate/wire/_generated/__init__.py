"""Written by tools/generate_proto.py from proto/PulsarApi.proto. Only wire imports this."""
