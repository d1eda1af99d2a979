"""Written by tools/generate_record_proto.py."""
