"""mkctf.py: CTF 1.8 as a tracer of the kernel writes it: a file for each CPU, sched_switch and other events.
SPDX-License-Identifier: ISC"""

import os
import struct

METADATA = '''/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := stamp_t;
trace {
	major = 1; minor = 8; byte_order = le;
	packet.header := struct { uint32_t magic; uint32_t stream_id; };
};
env { %s };
clock { name = monotonic; freq = 1000000000; offset_s = %d; offset = %d; absolute = %s; };
stream {
	id = 0;
	packet.context := struct { stamp_t timestamp_begin; stamp_t timestamp_end; uint64_t content_size; uint64_t packet_size; uint64_t events_discarded; uint32_t cpu_id; };
	event.header := struct { uint32_t id; stamp_t timestamp; };
};
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct {
	string prev_comm; int32_t prev_tid; int32_t prev_state; string next_comm; int32_t next_tid; }; };
event { name = "irq_handler_entry"; id = 1; stream_id = 0; fields := struct { int32_t irq; string name; }; };
event { name = "block_rq_issue"; id = 2; stream_id = 0; fields := struct {
	uint32_t length; struct { uint8_t major; uint8_t minor; } dev; uint32_t _sectors_length; uint32_t sectors[_sectors_length];
	enum : uint8_t { READ = 0, WRITE = 1 ... 3 } how; }; };
'''


def write(folder, cpus, *, env=(('domain', 'kernel'), ('tracer_name', 'lttng-modules')), offset_ns=0, absolute=True, discarded=0):
    """cpus: the events of each CPU, sorted by time: (ns, 'switch', (prev name, tid), (next name, tid)), (ns, 'irq', number, name),
    (ns, 'block', sectors, how)."""
    os.makedirs(folder)
    said = ' '.join(f'{name} = {value};' if isinstance(value, int) else f'{name} = "{value}";' for name, value in env)
    with open(f'{folder}/metadata', 'w', encoding='utf-8') as file:
        file.write(METADATA % (said, offset_ns // 10**9, offset_ns % 10**9, 'true' if absolute else 'false'))
    for cpu, events in enumerate(cpus):
        body = b''
        for ns, what, *rest in events:
            if what == 'switch':
                (prev, prev_tid), (new, new_tid) = rest
                body += struct.pack('<IQ', 0, ns) + prev.encode() + b'\0' + struct.pack('<ii', prev_tid, 1) + new.encode() + b'\0' + struct.pack('<i', new_tid)
            elif what == 'irq':
                body += struct.pack('<IQi', 1, ns, rest[0]) + rest[1].encode() + b'\0'
            else:
                sectors, how = rest
                body += struct.pack('<IQIBBI', 2, ns, 512 * len(sectors), 8, 1, len(sectors)) + struct.pack(f'<{len(sectors)}IB', *sectors, how)
        head = 8 + 5 * 8 + 4
        first, last = (events[0][0], events[-1][0]) if events else (0, 0)
        for part in range(2 if discarded else 1):  # an empty packet, after which some are missing
            size = head + (len(body) if part == (1 if discarded else 0) else 0)
            ends = last if size > head or not discarded else first
            with open(f'{folder}/channel0_{cpu}', 'ab') as file:
                file.write(struct.pack('<IIQQQQQI', 0xC1FC1FC1, 0, first, ends, size * 8, size * 8, discarded if part else 0, cpu))
                file.write(body if size > head else b'')
