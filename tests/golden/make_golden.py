#!/usr/bin/env python3
"""Writes compression.txt: updates, the messages they must become, and what those must decode to, from the text of
compression/FORMAT.md alone. The encoders and readers are in sparse.py, quantized.py and downstream.py.

  make_golden.py            writes the file beside this script
  make_golden.py --check    exits with 1 when the file differs from what would be written
"""
import pathlib
import random
import struct
import sys

import downstream
import quantized
import sparse
from common import bits_of, f32, float_of

KEY = (20180522, 3, 1)  # run, round, client

# Those of CodecSpec in core/run_config.h.
DEFAULTS = {'density': 0.01, 'counts': 'proportional', 'mean_precision': 'fp32', 'positions': 'auto',
            'grouping': 'per_tensor', 'merge_below': 4096, 'bits': 4, 'code': 'simple', 'bucket': 0, 'threshold': 0.01,
            'samples': 0.05, 'clip': 0.0}

QUANTIZED = ('qsgd', 'terngrad', 'one_bit', 'signsgd', 'signum', 'ef_signsgd', 'low_precision', 'fp16', 'bf16', 'dense')


def codec_of(spec):
    return quantized if spec['name'] in QUANTIZED else sparse


def merged(spec, tensors):
    """The groups that are coded as one: FORMAT.md, "Grouping"."""
    below = {'per_tensor': 0, 'merge_small': spec['merge_below'], 'global': 2**31}[spec['grouping']]
    small = [i for i, tensor in enumerate(tensors) if len(tensor) < below]
    if len(small) < 2:
        return [[i] for i in range(len(tensors))]
    return [small] + [[i] for i in range(len(tensors)) if i not in small]


def encode(spec, tensors):
    spec = {**DEFAULTS, **spec}
    groups = [[x for i in group for x in tensors[i]] for group in merged(spec, tensors)]
    return codec_of(spec).encode(spec, groups, KEY)


def encode_with(spec, tensors, buffers):
    return encode(spec, tensors) + b''.join(struct.pack('<f', x) for buffer in buffers for x in buffer)


def decode_with(spec, tensors, buffers, message):
    """The decoded values of every tensor and buffer."""
    behind = 4 * sum(len(buffer) for buffer in buffers)
    floats = iter(struct.unpack(f'<{behind // 4}f', message[len(message) - behind:]))
    return decode(spec, tensors, message[:len(message) - behind]) + [[next(floats) for _ in buffer] for buffer in buffers]


def decode(spec, tensors, message):
    """The decoded values of every tensor; `tensors` gives the sizes only."""
    spec = {**DEFAULTS, **spec}
    groups = merged(spec, tensors)
    decoded = codec_of(spec).decode(spec, [sum(len(tensors[i]) for i in group) for group in groups], message)
    result = [None] * len(tensors)
    for group, values in zip(groups, decoded):
        at = 0
        for i in group:
            result[i] = values[at:at + len(tensors[i])]
            at += len(tensors[i])
    return result


def random_tensor(rng, n, kind):
    if kind == 'gauss':
        return [f32(rng.gauss(0, 0.01)) for _ in range(n)]
    if kind == 'ties':
        return [rng.choice([-0.5, -0.25, 0.0, 0.25, 0.5]) for _ in range(n)]
    if kind == 'sparse':
        return [f32(rng.gauss(0, 1)) if rng.random() < 0.01 else 0.0 for _ in range(n)]
    if kind == 'negative':
        return [-f32(rng.expovariate(1)) for _ in range(n)]
    if kind == 'denormal':
        return [float_of(rng.randrange(1, 0x8000) | rng.randrange(2) << 31) for _ in range(n)]
    return [float_of(rng.randrange(0x7f7f0000, 0x7f800000)) for _ in range(n)]  # huge


KINDS = ('gauss', 'ties', 'sparse', 'negative', 'denormal', 'huge')


def specs():
    for p, precision in ((0.001, 'fp32'), (0.01, 'bf16'), (0.29, 'fp32'), (1.0, 'bf16')):
        for name in ('sbc', 'stc', 'sbc_or_stc'):
            yield {'name': name, 'density': p, 'mean_precision': precision, 'positions': 'rice'}
    for positions in ('golomb', 'elias_gamma', 'elias_delta', 'run_length', 'gap_class', 'fixed16', 'auto'):
        yield {'name': 'top_k', 'density': 0.2, 'positions': positions}
    yield {'name': 'sbc', 'density': 0.05, 'positions': 'rice', 'grouping': 'merge_small', 'merge_below': 25}
    yield {'name': 'qsgd', 'bits': 4, 'bucket': 16, 'grouping': 'global'}
    yield {'name': 'dgc', 'density': 0.1, 'positions': 'rice'}
    yield {'name': 'strom', 'threshold': 0.25, 'positions': 'rice'}
    yield {'name': 'adacomp', 'positions': 'rice'}
    yield {'name': 'random_sparse', 'density': 0.1, 'code': 'simple'}
    yield {'name': 'random_sparse', 'density': 0.1, 'code': 'unbiased'}
    for samples in (0.05, 3.0):
        yield {'name': 'mcgq', 'samples': samples, 'code': 'simple'}
        yield {'name': 'mcgq', 'samples': samples, 'code': 'positions', 'positions': 'rice'}
    for bits in (1, 2, 8):
        for code in ('simple', 'elias'):
            yield {'name': 'qsgd', 'bits': bits, 'code': code}
    yield {'name': 'terngrad', 'clip': 0.0}
    yield {'name': 'terngrad', 'clip': 2.5}
    yield {'name': 'one_bit', 'bucket': 0}
    yield {'name': 'one_bit', 'bucket': 32}
    for bits in (2, 4, 16):
        yield {'name': 'low_precision', 'bits': bits}
    yield {'name': 'low_precision_sparse', 'density': 0.05, 'positions': 'rice'}
    for name in ('signsgd', 'signum', 'ef_signsgd', 'fp16', 'bf16', 'dense'):
        yield {'name': name}


def words(tensors):
    return ' '.join('%08x' % bits_of(x) for tensor in tensors for x in tensor)


def sizes(tensors):
    return ' '.join(str(len(tensor)) for tensor in tensors)


def case(name, spec, tensors, buffers=()):
    message = encode_with(spec, tensors, buffers)
    return ['', f'case {name}', 'codec ' + ' '.join(f'{key}={value}' for key, value in spec.items()),
            'layout ' + sizes(tensors) + (' buffers ' + sizes(buffers) if buffers else ''),
            'update ' + words([*tensors, *buffers]), f'message {message.hex()}',
            'decoded ' + words(decode_with(spec, tensors, buffers, message))]


def update_cases():
    sbc = {'name': 'sbc', 'density': 0.3, 'positions': 'rice'}
    stc = dict(sbc, name='stc')
    example = [[0.5, -4.0, 3.0, 0.0, 2.5, 1.0], [0.0, 0.0, 0.0]]
    yield 'worked-example', sbc, example
    yield 'worked-example-stc', stc, example
    yield 'tie-of-sides', dict(sbc, density=0.5), [[-1.0, 1.0, -1.0, 1.0], [-2.0], [-0.0, 0.0]]
    bf16 = dict(sbc, density=1.0, mean_precision='bf16')
    yield 'bf16-halfway', bf16, [[float_of(0x3f808000)], [float_of(0x3f818000)], [float_of(0xbf818001)]]
    rng = random.Random(20180522)
    for number, spec in enumerate(specs()):
        for kind in KINDS:
            sizes = [45, 7] if number % 3 else [1, 30, 20]
            yield f'{spec["name"]}-{number}-{kind}', spec, [random_tensor(rng, n, kind) for n in sizes]
    for positions in ('rice', 'golomb', 'gap_class', 'auto'):
        spec = dict(sbc, density=0.02, positions=positions)
        yield f'long-{positions}', spec, [random_tensor(rng, 900, 'gauss')]
    rng = random.Random(1803)
    for name in ('sbc', 'stc', 'sbc_or_stc', 'top_k', 'random_sparse'):
        spec = {'name': name, 'density': 0.1, 'counts': 'equal', 'positions': 'rice'}
        yield f'equal-counts-{name}', spec, [random_tensor(rng, n, 'gauss') for n in (45, 3, 7, 1)]
    merged = dict(spec, name='sbc', grouping='merge_small', merge_below=25)
    yield 'equal-counts-merged', merged, [random_tensor(rng, n, 'gauss') for n in (30, 5, 7)]
    yield from sparseloco_cases()


def sparseloco_cases():
    rng = random.Random(2508)
    example = [[1.0, -2.0, 0.5, 8.0, 0.0, 3.0, 0.25, -1.0]]
    yield 'worked-example-sparseloco', {'name': 'sparseloco', 'density': 0.5, 'bits': 2, 'bucket': 4, 'positions': 'rice'}, example
    for bits, bucket, positions in ((2, 16, 'rice'), (1, 8, 'auto'), (8, 0, 'chunk12')):
        spec = {'name': 'sparseloco', 'density': 0.3, 'bits': bits, 'bucket': bucket, 'positions': positions}
        for kind in KINDS:
            yield f'sparseloco-{bits}-{kind}', spec, [random_tensor(rng, n, kind) for n in (1, 30, 20)]
    tensor = [0.0] * 8200
    for i in range(0, len(tensor) - 20, 130):
        tensor[i + rng.randrange(20)] = f32(rng.gauss(0, 1))
    chunks = {'name': 'sparseloco', 'density': 0.004, 'bits': 2, 'bucket': 4096, 'positions': 'chunk12'}
    yield 'chunk12', chunks, [tensor]
    yield 'chunk12-uneven', {'name': 'top_k', 'density': 0.003, 'positions': 'chunk12'}, [tensor]


def buffer_cases():
    sbc = {'name': 'sbc', 'density': 0.3, 'positions': 'rice'}
    yield 'worked-example-buffers', sbc, [[0.5, -4.0, 3.0, 0.0, 2.5, 1.0], [0.0, 0.0, 0.0]], [[0.125, -2.0]]
    rng = random.Random(2015)
    merged_sbc = dict(sbc, grouping='merge_small', merge_below=25)
    for spec in (merged_sbc, {'name': 'qsgd', 'bits': 4, 'code': 'elias', 'grouping': 'global'}, {'name': 'dense'},
                 {'name': 'mcgq', 'samples': 3.0, 'code': 'simple'}):
        tensors, buffers = ([random_tensor(rng, n, 'gauss') for n in counts] for counts in ((1, 30, 20), (7, 2)))
        yield f'{spec["name"]}-buffers', spec, tensors, buffers + [[-0.0, float_of(1), float_of(0x7f7fffff)]]


def choice_cases():
    """(name, all specs of the run, the choice, tensors, buffers)"""
    sbc = {'name': 'sbc', 'positions': 'rice'}
    specs = [dict(sbc, density=0.3), dict(sbc, density=0.1), {'name': 'qsgd', 'bits': 2}]
    rng = random.Random(26)
    for choice, spec in enumerate(specs):
        yield f'choice-{choice}-{spec["name"]}', specs, choice, [random_tensor(rng, n, 'gauss') for n in (30, 7)], []
    yield 'choice-buffers', specs, 1, [random_tensor(rng, 20, 'gauss')], [[0.125, -2.0]]


def choice_case(name, specs, choice, tensors, buffers):
    lines = case(name, specs[choice], tensors, buffers)
    message = bytes([0x1a, choice]) + encode_with(specs[choice], tensors, buffers)
    at = next(i for i, line in enumerate(lines) if line.startswith('codec '))
    lines[at:at + 1] = [f'choices {choice}'] + ['codec ' + ' '.join(f'{key}={value}' for key, value in spec.items())
                                                for spec in specs]
    return [f'message {message.hex()}' if line.startswith('message ') else line for line in lines]


def downstream_cases():
    sbc = {'name': 'sbc', 'density': 0.1, 'positions': 'rice'}
    yield 'downstream', {'name': 'dense'}, [], 0, 0
    yield 'downstream-sbc', sbc, [], 0, 0
    yield 'downstream-weighted', {'name': 'dense'}, [600, 1, 35], 0, 0
    yield 'downstream-weighted-sbc', sbc, [1, 2**14, 2**21 - 1, 127, 128], 0, 0
    yield 'downstream-weighted-bits', {'name': 'dense'}, [2**24 + 1, 2**53 + 1, 3], 0, 0
    yield 'downstream-weighted-most', {'name': 'qsgd', 'bits': 2}, [2**61, 2**62, 2**61 - 1], 0, 0
    yield 'downstream-shares', {'name': 'dense'}, [2**20, 741455, 2**19], 3 * 2**20, 0
    yield 'downstream-shares-sbc', sbc, [1, 1, 1], 2**63 - 1, 0
    yield 'downstream-shares-one-less', sbc, [127, 128, 2**14], 2**14 + 256, 0
    yield 'downstream-signs', {'name': 'signsgd'}, [], 0, 0
    yield 'downstream-most-listed', {'name': 'stc', 'density': 0.3, 'positions': 'rice'}, [3, 5, 1, 1, 9], 0, 0
    stc = {'name': 'stc', 'density': 0.3, 'positions': 'rice'}
    yield 'downstream-imputed', sbc, [], 0, 0.625
    yield 'downstream-imputed-wholly', stc, [], 0, 1.0
    yield 'downstream-imputed-weighted', stc, [600, 1, 35, 40], 0, float.fromhex('0x1.99999ap-1')
    yield 'downstream-imputed-shares', stc, [127, 128, 2**14], 2**15, float.fromhex('0x1p-149')


def downstream_case(name, spec, updates, samples, total, trust):
    messages = [encode(spec, [update]) for update in updates]
    decoded = [decode(spec, [update], message)[0] for update, message in zip(updates, messages)]
    forward = downstream.forward(messages, samples, total, trust)
    if downstream.read_forward(forward) != (messages, samples, total, trust):
        raise ValueError('what was written is not what is read')
    lines = ['', f'case {name}', 'codec ' + ' '.join(f'{key}={value}' for key, value in spec.items()),
             f'layout {len(updates[0])}'] + [f'message {message.hex()}' for message in messages]
    lines += ['samples ' + ' '.join(map(str, samples))] if samples else []
    lines += [f'total {total}'] if total else []
    lines += ['trust ' + words([[trust]])] if trust else []
    # Numbers of one byte and of several; the most samples that an update may stand for is 2^48.
    cohorts = [(1 + 130 * i * i, samples[i] % 2**48 + 1 if samples else 1) for i in range(len(messages))]
    lines += ['cohorts ' + ' '.join(f'{clients} {count}' for clients, count in cohorts),
              f'bundle {downstream.bundle(messages, cohorts).hex()}']
    values = downstream.step_of(decoded, samples, total, trust)
    return lines + [f'forward {forward.hex()}', f'step {downstream.step(values).hex()}', f'average {downstream.dense(values).hex()}',
                    f'coded {downstream.coded(messages[0]).hex()}']


def model_cases():
    yield 'model-4-bits', {'name': 'low_precision', 'bits': 4}
    yield 'model-12-bits', {'name': 'low_precision', 'bits': 12, 'grouping': 'global'}
    yield 'model-fp16', {'name': 'fp16'}


def model_case(name, spec, tensors, snapshot):
    flat, message = [x for tensor in tensors for x in tensor], encode(spec, tensors)
    decoded = [x for tensor in decode(spec, tensors, message) for x in tensor]
    center = [x for tensor in snapshot for x in tensor]
    return ['', f'case {name}', 'codec ' + ' '.join(f'{key}={value}' for key, value in spec.items()),
            'layout ' + sizes(tensors), 'snapshot ' + words(snapshot), f'message {message.hex()}',
            f'model {downstream.whole_model(flat).hex()} ' + words([flat]),
            f'model {downstream.coded_model(message).hex()} ' + words([decoded]),
            f'model {downstream.centered_model(message).hex()} ' + words([downstream.centered(center, decoded)]),
            f'model {downstream.centered_model(b"").hex()} ' + words([downstream.centered(center, [0.0] * len(center))])]


def render():
    lines = ['# Written by make_golden.py from compression/FORMAT.md; floats are the hexadecimal digits of their bits.']
    for name, spec, tensors in update_cases():
        lines += case(name, spec, tensors)
    for name, spec, tensors, buffers in buffer_cases():
        lines += case(name, spec, tensors, buffers)
    for choice in choice_cases():
        lines += choice_case(*choice)
    rng = random.Random(1)
    for name, spec, samples, total, trust in downstream_cases():
        updates = [random_tensor(rng, 40, 'gauss') for _ in range(max(3, len(samples)))]
        lines += downstream_case(name, spec, updates, samples, total, trust)
    rng = random.Random(2019)
    for name, spec in model_cases():
        lines += model_case(name, spec, *([random_tensor(rng, n, 'gauss') for n in (20, 7)] for _ in range(2)))
    return '\n'.join(lines) + '\n'


def main():
    path = pathlib.Path(__file__).with_name('compression.txt')
    if '--check' in sys.argv[1:]:
        if path.read_text() != render():
            sys.exit(f'{path} is not what make_golden.py writes; run it and look at the difference')
        return
    path.write_text(render())


if __name__ == '__main__':
    main()
