"""The downstream messages of compression/FORMAT.md, "0x81 to 0x85" and "0x86 to 0x88", in Python, written from that text alone.

`samples` has one number an update, or none for the plain average.

  forward(updates, samples, total=0) -> bytes; `total` where the samples are shares of more than their sum
  dense(decoded, samples, total=0) -> bytes, of decoded updates (lists of floats)
  coded(message) -> bytes, of a message of the downstream codec
  whole_model(values), coded_model(message), centered_model(message) -> bytes; the snapshot is centered_model(b'')
  centered(snapshot, decoded) -> the model, of lists of floats
  read_forward(message) -> (updates, samples, total); ValueError for what no coordinator sends
"""
import struct

from common import f32


def varint(value):
    out = b''
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def forward(updates, samples, total=0):
    out = bytes([0x85 if total else 0x83 if samples else 0x81]) + varint(len(updates))
    out += varint(total) if total else b''
    for i, update in enumerate(updates):
        out += (varint(samples[i]) if samples else b'') + varint(len(update)) + update
    return out


def average(decoded, samples, total):
    weights = [f32(float(n) / float(total or sum(samples))) for n in samples]
    step = [0.0] * len(decoded[0])
    for i, update in enumerate(decoded):
        terms = [f32(weights[i] * x) for x in update] if weights else update
        step = [f32(a + x) for a, x in zip(step, terms)]
    return step if weights else [f32(a * f32(1 / len(decoded))) for a in step]


def dense(decoded, samples, total=0):
    return b'\x82' + b''.join(struct.pack('<f', x) for x in average(decoded, samples, total))


def coded(message):
    return b'\x84' + message


def whole_model(values):
    return b'\x86' + b''.join(struct.pack('<f', x) for x in values)


def coded_model(message):
    return b'\x87' + message


def centered_model(message):
    return b'\x88' + message


def centered(snapshot, decoded):
    return [f32(x + y) for x, y in zip(snapshot, decoded)]


def read_varint(message, at):
    value, shift = 0, 0
    while True:
        if at >= len(message) or shift == 63:
            raise ValueError('a bad number')
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 0x80:
            if shift > 7 and message[at - 1] == 0:
                raise ValueError('not the shortest form')
            return value, at


def read_forward(message):
    if not message or message[0] not in (0x81, 0x83, 0x85):
        raise ValueError('another format')
    count, at = read_varint(message, 1)
    total, at = read_varint(message, at) if message[0] == 0x85 else (0, at)
    updates, samples = [], []
    for _ in range(count):
        if message[0] != 0x81:
            number, at = read_varint(message, at)
            samples.append(number)
        size, at = read_varint(message, at)
        if not 0 < size <= len(message) - at:
            raise ValueError('a bad length')
        updates.append(message[at:at + size])
        at += size
    if not count or at != len(message) or 0 in samples or sum(samples) >= 2**63:
        raise ValueError('bad counts')
    if message[0] == 0x85 and not sum(samples) < total < 2**63:
        raise ValueError('a bad total')
    return updates, samples, total
