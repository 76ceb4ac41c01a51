"""Decode cost; the measuring itself is native (decode_bench.cpp)."""
