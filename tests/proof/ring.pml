/* ring.pml: a model of the ring's protocol for the model checker spin.  One OS thread writes a stream.  Two signal handlers, one
 * of which can interrupt the other, interrupt the thread in the middle of events and record, too.  A reader reads at any moment,
 * as after a crash at that moment.
 *
 * The names of the steps are in comments at the atomics of include/weft/record_inline.h and src/record/core.c.  Memory is
 * sequentially consistent in the model, which the memory orders of the code allow (release, acquire, the fence of INVALIDATE).
 * Sizes count events: a packet takes SOFT events, and nested events may fill it up to HARD.
 *
 * Each macro BROKEN_* adds a fault to the model.  spin must find it, which shows that the checks of the model work.
 * SPDX-License-Identifier: ISC */

#define PACKETS 2
#define SOFT 2
#define HARD 3
#ifndef EVENTS
#define EVENTS 4
#endif

#define TORN 255 /* an event of which only some bytes are written */
#define NOBODY 9

/* A position has two parts: a count of all events, and the place in the packet (the lowest 2 bits). */
#define PLACE(position) ((position) & 3)
#define AFTER(position) ((position) + 4 + 1)
#define FRESH(position) ((position) & 252)

typedef packet_type {
	byte lock;
	byte content;
	byte sequence;
	byte begin; /* time of the packet's begin; no event in the packet is older */
	byte cell[HARD]
};

packet_type ring[PACKETS]; /* the memory that readers see */

byte next, published, last, slot, sequence; /* the variables of the writer and its handlers */
byte clock = 1;
bool masked;    /* signals are masked, so no handler can start */
byte level = 0; /* what runs: the thread (0), or its handler 1 or 2 */

byte promised[16]; /* for each sequence number of a packet, the number of events whose record calls have returned */
byte lost;

inline switch_packet(seen)
{
	masked = true;
	if
	:: next == seen ->
		slot = (slot + 1) % PACKETS;
		sequence++;
#ifndef BROKEN_INVALIDATE
		ring[slot].lock = ring[slot].lock | 1;         /* INVALIDATE */
#else
		ring[slot].lock = 2;
#endif
		ring[slot].content = 0;
		ring[slot].sequence = sequence;                /* REFILL */
		ring[slot].begin = clock;
#ifndef BROKEN_INVALIDATE
		ring[slot].lock = (ring[slot].lock | 1) + 1;   /* VALIDATE */
#endif
		published = FRESH(next);
		next = FRESH(next)
	:: else
	fi;
	masked = false
}

inline record(me)
{
	do
	:: begin = next;
	   nested = (begin != published);
	   if
	   :: PLACE(begin) >= (nested -> HARD : SOFT) ->
		if
		:: nested && next != begin -> skip /* not nested: a handler ran between the reads of `next` and `published` */
		:: nested && next == begin ->
			assert(me > 0); /* only a handler can start in the middle of an event, not the thread */
			lost++;
			break
		:: !nested -> switch_packet(begin)
		fi
	   :: else ->
		atomic { time = clock; clock++ };
		last = time;
		atomic {                                       /* RESERVE */
			taken = (next == begin);
			if
			:: taken -> next = AFTER(begin); own = sequence
			:: else
			fi
		};
		if
		:: !taken -> skip
		:: else ->
#ifdef BROKEN_ORDER
			ring[slot].content = PLACE(AFTER(begin));
#endif
			ring[slot].cell[PLACE(begin)] = TORN;  /* WRITE */
			ring[slot].cell[PLACE(begin)] = time;
			if                                     /* PUBLISH */
#ifndef BROKEN_NESTED
			:: published != begin -> skip          /* the interrupted code publishes this event */
#endif
			:: else ->
				mine = slot;
				end = AFTER(begin);
				do
				:: ring[mine].content = PLACE(end);
				   published = end;
				   seen = next;
				   if
				   :: seen == end -> break
				   :: else
				   fi;
#ifndef BROKEN_LAST_LOOK
				   if
				   :: published != end -> break
				   :: else
				   fi;
#endif
				   end = seen
				od
			fi;
			break
		fi
	   fi
	od;
	atomic {
		if
		:: me == 0 && PLACE(begin) + 1 > promised[own] -> promised[own] = PLACE(begin) + 1
		:: else
		fi;
		/* Resets variables that are no longer used, so that they do not multiply the states. */
		own = 0; begin = 0; end = 0; seen = 0; time = 0; mine = 0; nested = false; taken = false
	}
}

/* begin, end: positions of the event; own: sequence number of its packet; seen: a value of `next`; mine: the packet in which
 * the event is published */
#define LOCALS byte begin, end, own, seen, time, mine, calls; bool nested, taken

active proctype thread() provided (level == 0)
{
	LOCALS;
	ring[0].lock = 2;
	for (calls : 1 .. EVENTS) {
		record(0);
		atomic {
			assert(published == next && ring[slot].content == PLACE(next));
			assert(PLACE(next) < 2 || ring[slot].cell[0] < ring[slot].cell[1]); /* time does not go back */
			assert(PLACE(next) < 3 || ring[slot].cell[1] < ring[slot].cell[2])
		}
	}
}

byte interrupted[3];

/* Each handler runs once, at any moment, and interrupts code of a lower level. */
active proctype interrupt_1()
{
	atomic { level < 1 && !masked -> interrupted[1] = level; level = 1 }
}

active proctype interrupt_2()
{
	atomic { level < 2 && !masked -> interrupted[2] = level; level = 2 }
}

active proctype handler_1() provided (level == 1)
{
	LOCALS;
	record(1);
	level = interrupted[1]
}

active proctype handler_2() provided (level == 2)
{
	LOCALS;
	record(2);
	level = interrupted[2]
}

/* Each packet that the reader accepts has only whole events of one use of the packet, and all events whose record calls had
 * returned.  The reader looks at one event, which stands for all. */
active proctype reader()
{
	byte p, i, lock, content, must, cell, begin;
	atomic {
		select (p : 0 .. PACKETS - 1);
		select (i : 0 .. HARD - 1);
		lock = ring[p].lock;
		must = promised[ring[p].sequence];
		begin = ring[p].begin;
		if
		:: lock == 0 || lock & 1 -> p = 0; i = 0; lock = 0; begin = 0; must = 0; goto done
		:: else
		fi
	};
	atomic { content = ring[p].content; i = (i < content -> i : HARD) };
	atomic {
		if
		:: i < HARD -> cell = ring[p].cell[i]
		:: else
		fi
	};
	atomic {
		if
#ifdef BROKEN_READER
		:: true ->
#else
		:: ring[p].lock == lock ->
#endif
			assert(content >= must);
			assert(i == HARD || (cell != TORN && cell >= begin))
		:: else
		fi;
		p = 0; i = 0; lock = 0; content = 0; must = 0; cell = 0; begin = 0
	};
done:
	skip
}
