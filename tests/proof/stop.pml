/* stop.pml: RETIRE, for spin: another OS thread stops the recording while one records.  Once stop has returned, nobody may
 * write: the memory may be somebody else's.  The owner's swap (RESERVE) is not locked, so it is two steps here, a look and a
 * store, between which the other's store may fall; what it is not is divided by a barrier (membarrier), which ends between two
 * instructions.  The names are those of src/record/thread.c.  SPDX-License-Identifier: ISC */

#define EVENTS 3
#define CLOSED 100 /* added to what next was */

byte next, published, limit = 1;
bool in_swap;    /* the owner is in the middle of that instruction */
bool given_back; /* stop has returned */

active proctype owner()
{
	byte begin, seen, n;
	bool same;
	for (n : 1 .. EVENTS) {
		begin = next;
		if
		:: limit == 0 -> goto out /* the slow path: it sees that the stream is retired, and leaves */
		:: else
		fi;
		atomic { in_swap = true; same = (next == begin) };   /* RESERVE */
		atomic {
			if
			:: same -> next = begin + 1
			:: else
			fi;
			in_swap = false
		};
		if
		:: !same -> goto out
		:: else
		fi;
		assert(!given_back);                                 /* WRITE */
		assert(!given_back);                                 /* PUBLISH */
		published = begin + 1;
		seen = next;
		assert(seen == begin + 1 || seen >= CLOSED)
	}
out:
	skip
}

inline barrier_everywhere()
{
	!in_swap
}

active proctype stop()
{
	byte rest, spoilt;
	limit = 0;
	barrier_everywhere();
again:
	rest = next;
	if
	:: rest != published -> goto again /* wait_until_at_rest */
	:: else
	fi;
#ifndef BROKEN_SPOIL
	spoilt = rest + CLOSED;
#ifdef BROKEN_STORE
	next = spoilt;
#else
	if
	:: atomic { next == rest -> next = spoilt }
	:: atomic { next != rest -> goto again }
	fi;
#endif
#ifndef BROKEN_BARRIER
	barrier_everywhere();
#endif
	if
	:: next != spoilt -> goto again /* the swap ran over our store: an event is being written */
	:: else
	fi;
#endif
	given_back = true
}
