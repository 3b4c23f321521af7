/* stop.pml: a model of RETIRE for the model checker spin.  An OS thread stops the recording while another one, the owner of a
 * stream, records.  When stop has returned, the owner must not write, because the memory may be used for something else.  The
 * owner's swap (RESERVE) has no lock prefix, so the model has two steps for it, a load and a store, between which the other thread
 * may store.  A barrier (membarrier) cannot divide the swap, because it ends between two instructions.  The names are those of
 * src/record/thread.c.  SPDX-License-Identifier: ISC */

#define EVENTS 3
#define CLOSED 100 /* added to `next` by stop */

byte next, published, limit = 1;
bool in_swap;    /* the owner is in the middle of the swap */
bool given_back; /* true when stop has returned */

active proctype owner()
{
	byte begin, seen, n;
	bool same;
	for (n : 1 .. EVENTS) {
		begin = next;
		if
		:: limit == 0 -> goto out /* the slow path: the owner sees that the stream is retired, and leaves */
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
	:: next != spoilt -> goto again /* the owner's swap has overwritten the store of stop, so an event is being written */
	:: else
	fi;
#endif
	given_back = true
}
