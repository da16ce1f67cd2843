/*
 * The barn's two stacks and the sheaves that go between them: src/base/tagged_stack.h,
 * src/barn/barn.c. An allocating thread puts an empty sheaf and gets a full one, a freeing thread
 * the other way round. A third one empties a full sheaf, gives its memory to the pool, and takes it
 * out again for another cache's stack: type-stable memory is used again at once. A head is a pair
 * {first, tag} and is read half by half; `next` is read from a sheaf that may have gone elsewhere
 * meanwhile; the compare-and-swap is one step. Memory is sequentially consistent here: the orders
 * stand at the code.
 * Shown: each sheaf is in one place, the full stack holds full ones and the empty stack empty ones
 * (I1 of barn.h), nothing is lost.
 *
 * check: holds
 * BREAK=1: the compare-and-swap does not compare the tag.
 * check: breaks -DBREAK=1
 * BREAK=2: a pop does not change the tag.
 * check: breaks -DBREAK=2
 */
#ifndef BREAK
#define BREAK 0
#endif

#define SHEAVES 4
#define FULL  0
#define EMPTY 1
#define OTHER 2                         /* another cache's empty stack */

byte first[3], tag[3];
byte next[SHEAVES + 1];
byte in_hands[SHEAVES + 1];             /* ghost: the thread that holds it; 0: none */
bool is_full[SHEAVES + 1];
byte over;

inline pop(s, e) {
        do
        :: seen = first[s];
           seen_tag = tag[s];
           if
           :: seen == 0 -> e = 0; break
           :: else
           fi;
           after = next[seen];          /* perhaps not on this stack any more */
           atomic {
                if
                :: first[s] == seen && (tag[s] == seen_tag || BREAK == 1) ->
                        first[s] = after;
                        if
                        :: BREAK == 2
                        :: else -> tag[s]++
                        fi;
                        e = seen;
                        assert(in_hands[e] == 0);
                        in_hands[e] = me;
                        assert(is_full[e] == (s == FULL));
                        break
                :: else
                fi
           }
        od
}

inline push(s, e) {
        assert(in_hands[e] == me);
        do
        :: seen = first[s];
           seen_tag = tag[s];
           next[e] = seen;
           atomic {
                if
                :: first[s] == seen && (tag[s] == seen_tag || BREAK == 1) ->
                        first[s] = e;
                        if
                        :: BREAK == 2
                        :: else -> tag[s]++
                        fi;
                        in_hands[e] = 0;
                        break
                :: else
                fi
           }
        od
}

/* A full one for an empty one, then back: what misses do. */
proctype allocate(byte me) {
        byte e, seen, seen_tag, after;

        pop(FULL, e);
        if
        :: e -> is_full[e] = false; push(EMPTY, e)
        :: else
        fi;
        over++
}

proctype release(byte me) {
        byte e, seen, seen_tag, after;

        pop(EMPTY, e);
        if
        :: e -> is_full[e] = true; push(FULL, e)
        :: else
        fi;
        over++
}

/* Takes two, gives back the second one as it was, and the first one's memory to another cache. */
proctype evict(byte me) {
        byte e, f, seen, seen_tag, after;

        pop(FULL, e);
        pop(FULL, f);
        if
        :: f -> is_full[f] = false; push(OTHER, f)
        :: else
        fi;
        if
        :: e -> push(FULL, e)
        :: else
        fi;
        over++
}

byte found, at;

init {
        atomic {
                next[1] = 2;
                next[2] = 3;
                first[FULL] = 1;
                is_full[1] = true; is_full[2] = true; is_full[3] = true;
                first[EMPTY] = 4;
                run allocate(1);
                run release(2);
                run evict(3)
        }
        over == 3;
        d_step {
                at = first[FULL];
                do
                :: at -> found++; assert(is_full[at] && found <= SHEAVES); at = next[at]
                :: else -> break
                od;
                at = first[EMPTY];
                do
                :: at -> found++; assert(!is_full[at] && found <= SHEAVES); at = next[at]
                :: else -> break
                od;
                at = first[OTHER];
                do
                :: at -> found++; assert(!is_full[at] && found <= SHEAVES); at = next[at]
                :: else -> break
                od;
                assert(found == SHEAVES)
        }
}
