#!/usr/bin/env python3
"""Event files of TensorBoard, without TensorFlow: writes tensorboard_events.bin, and reads any such file.

    tests/golden/tensorboard_events.py write                    makes the golden file beside this script
    tests/golden/tensorboard_events.py read FILE                prints its events, a JSON object a line

The rounds are those of tests/tersectl/tensorboard_test.cc. Reading fails at the first checksum or length that is
wrong.
"""

import json
import pathlib
import struct
import sys


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def text(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def record(event):
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", masked_crc(length)) + event + struct.pack("<I", masked_crc(event))


def event(wall_time, step, scalars):
    values = b"".join(text(1, text(1, tag.encode()) + b"\x15" + struct.pack("<f", value)) for tag, value in scalars)
    return b"\x09" + struct.pack("<d", wall_time) + b"\x10" + varint(step) + text(5, values)


def golden():
    out = record(b"\x09" + struct.pack("<d", 1700000000.25) + text(3, b"brain.Event:2"))
    out += record(event(1700000011.5, 1, [
        ("test/accuracy", 0.5), ("test/loss", 1.25), ("test/top5", 0.875), ("test/perplexity", 3.5), ("train/loss", 2),
        ("bytes/up_payload", 1000), ("bytes/up_wire", 1600), ("bytes/down_payload", 3000), ("bytes/down_wire", 3200),
        ("bytes_total/up_wire", 1600), ("bytes_total/down_wire", 3200), ("compression/up_payload", 400),
        ("compression/up_wire", 250), ("compression/both_wire", 100), ("time/round_seconds", 1.5)]))
    # Round 2 was aborted, and what it sent counts.
    out += record(event(1700000031, 300, [
        ("train/loss", 0.75), ("bytes/up_payload", 1000), ("bytes/up_wire", 1600), ("bytes/down_payload", 3000),
        ("bytes/down_wire", 3200), ("bytes_total/up_wire", 4000), ("bytes_total/down_wire", 6400),
        ("compression/up_payload", 320), ("compression/up_wire", 200), ("compression/both_wire", 960000 / 10400),
        ("time/round_seconds", 1)]))
    return out


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                assert key & 7 == 2, "wire type"
                size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def events(data):
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert len(data) >= length + 16, "the file ends too early"
        content = data[12:12 + length]
        assert struct.unpack("<I", data[8:12])[0] == masked_crc(data[:8]), "checksum of a length"
        assert struct.unpack("<I", data[12 + length:16 + length])[0] == masked_crc(content), "checksum of an event"
        data = data[16 + length:]
        yield dict(fields(content))


def read(data):
    for one in events(data):
        scalars = {}
        for field, value in fields(one.get(5, b"")):
            assert field == 1
            parts = dict(fields(value))
            scalars[parts[1].decode()] = struct.unpack("<f", parts[2])[0]
        print(json.dumps({"time": struct.unpack("<d", one[1])[0], "step": one.get(2, 0),
                          "version": one.get(3, b"").decode(), "scalars": scalars}))


if __name__ == "__main__":
    assert masked_crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF
    if sys.argv[1:] == ["write"]:
        pathlib.Path(__file__).with_name("tensorboard_events.bin").write_bytes(golden())
    elif len(sys.argv) == 3 and sys.argv[1] == "read":
        read(pathlib.Path(sys.argv[2]).read_bytes())
    else:
        sys.exit(__doc__)
