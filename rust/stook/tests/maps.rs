//! Proves that range maps find and walk what a plain list of ranges has, drop each value once, and
//! that readers under RCU see whole values beside writers.
#![cfg(feature = "maple")]
#![deny(unsafe_op_in_unsafe_fn)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use stook::sys::{stook_rcu, stook_rcu_done, stook_rcu_head};
use stook::{Error, RangeMap, Rcu, RcuRangeMap};

#[test]
fn a_map_is_as_a_list_of_ranges() {
    let mut map = RangeMap::new().unwrap();
    let mut model = BTreeMap::new();
    let mut random = 88172645463325252u64;

    for round in 0..5000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (first, length) = (random % 5000, random >> 32 & 15);
        let (last, value) = (first + length, format!("value {round}"));
        let held = |key| {
            let (from, (to, value)) = model.range(..=key).next_back()?;
            (key <= *to).then(|| (*from, String::clone(value)))
        };
        if random >> 40 & 3 != 0 {
            let free = (first..=last).all(|key| held(key).is_none());
            let stored = map.insert(first..=last, value.clone());
            assert_eq!(stored, if free { Ok(()) } else { Err(Error::EXISTS) });
            if free {
                model.insert(first, (last, value));
            }
        } else {
            let expected = held(first);
            assert_eq!(map.get(first), expected.as_ref().map(|(_, value)| value));
            assert_eq!(map.remove(first), expected.as_ref().map(|(_, value)| value.clone()));
            expected.map(|(from, _)| model.remove(&from));
        }
    }
    assert!(model.len() > 50);
    assert!(map.iter().eq(model.iter().map(|(first, (last, value))| (*first..=*last, value))));
    let part: Vec<_> = map.between(1000..=1200).map(|(range, _)| range).collect();
    assert!(part.iter().all(|range| *range.end() >= 1000 && *range.start() <= 1200));
    let (first, last) = (part[0].clone(), part[part.len() - 1].clone());
    assert_eq!(map.between(*first.end()..=*last.start()).count(), part.len());
}

#[test]
#[allow(clippy::reversed_empty_ranges)]
fn edges_are_as_they_should_be() {
    let mut map = RangeMap::with_gaps().unwrap();

    assert!(map.is_empty() && map.get(0).is_none() && map.iter().next().is_none());
    assert_eq!(map.insert(9..=3, 0), Err(Error::INVALID));
    map.insert(0..=0, 1).unwrap();
    map.insert(u64::MAX..=u64::MAX, 2).unwrap();
    assert_eq!(map.alloc(u64::MAX - 1, 0..=u64::MAX, 3), Ok(1));
    assert_eq!(map.alloc(1, 0..=u64::MAX, 4), Err(Error::BUSY));
    *map.get_mut(77).unwrap() += 10;
    assert_eq!(map.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [1, 13, 2]);
    assert_eq!(map.between(9..=3).count(), 0);
    assert_eq!(format!("{map:?}").matches("..=").count(), 3);
    assert_eq!(RangeMap::new().unwrap().alloc(1, 0..=9, 5), Err(Error::INVALID));
}

#[test]
fn values_are_dropped_once() {
    let value = Arc::new(());
    let mut map = RangeMap::new().unwrap();

    for key in 0..100 {
        map.insert(key * 10..=key * 10 + 5, Arc::clone(&value)).unwrap();
    }
    assert_eq!(map.insert(3..=3, Arc::clone(&value)), Err(Error::EXISTS));
    assert_eq!(Arc::strong_count(&value), 101);
    drop(map.remove(55));
    assert_eq!(Arc::strong_count(&value), 100);
    drop(map);
    assert_eq!(Arc::strong_count(&value), 1);
}

/* An implementation of RCU: readers share a lock, and a grace period takes it alone. */

static READERS: RwLock<()> = RwLock::new(());
static WAITING: Mutex<Vec<(usize, stook_rcu_done)>> = Mutex::new(Vec::new());
static SECTIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SECTION: std::cell::RefCell<Vec<std::sync::RwLockReadGuard<'static, ()>>> =
        const { std::cell::RefCell::new(Vec::new()) };
}

unsafe extern "C" fn call(head: *mut stook_rcu_head, done: Option<stook_rcu_done>) {
    WAITING.lock().unwrap().push((head as usize, done.unwrap()));
}

unsafe extern "C" fn barrier() {
    let ready = std::mem::take(&mut *WAITING.lock().unwrap());
    drop(READERS.write().unwrap());
    for (head, done) in ready {
        // SAFETY: all readers that began before have ended, and each head is given once.
        unsafe { done(head as *mut stook_rcu_head) };
    }
}

unsafe extern "C" fn read_lock() {
    SECTIONS.fetch_add(1, Ordering::Relaxed);
    SECTION.with(|held| held.borrow_mut().push(READERS.read().unwrap()));
}

unsafe extern "C" fn read_unlock() {
    SECTION.with(|held| drop(held.borrow_mut().pop()));
}

static TABLE: stook_rcu = stook_rcu {
    ops_size: std::mem::size_of::<stook_rcu>(),
    call: Some(call),
    barrier: Some(barrier),
    read_lock: Some(read_lock),
    read_unlock: Some(read_unlock),
    quiescent: None,
    may_wait: None,
};

/// Says when it is dropped, and is made unreadable then.
struct Watched {
    pair: (u64, u64),
    drops: Arc<AtomicUsize>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.pair = (1, 0);
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_see_whole_values_beside_writers() {
    let drops = Arc::new(AtomicUsize::new(0));
    let watched = |n| Watched { pair: (n, n), drops: Arc::clone(&drops) };
    // SAFETY: the functions above are an implementation, and any thread may call them.
    let map = RcuRangeMap::new(unsafe { Rcu::from_table(&TABLE) }).unwrap();
    let end = AtomicBool::new(false);
    let mut made = 100;

    for key in 0..100 {
        map.insert(key * 10..=key * 10 + 9, watched(key)).unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut key = 0;
            loop {
                let reader = map.read();
                let found = reader.get(key).expect("no key is a gap");
                assert_eq!(found.pair.0, found.pair.1);
                assert_eq!(reader.between(0..=99).count(), 10);
                assert_eq!(found.pair.0, found.pair.1);
                key = (key + 7) % 1000;
                if end.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for round in 0..3000 {
            assert_eq!(map.replace(round * 13 % 1000, watched(round)), Ok(true));
            made += 1;
            if round % 500 == 0 {
                // SAFETY: this thread is no reader.
                unsafe { barrier() };
            }
        }
        end.store(true, Ordering::Relaxed);
    });
    assert!(SECTIONS.load(Ordering::Relaxed) > 0);
    assert_eq!(map.insert(5..=5, watched(0)), Err(Error::EXISTS));
    assert_eq!(map.remove(5), Ok(true));
    assert_eq!(map.remove(5), Ok(false));
    assert_eq!(map.replace(5, watched(0)), Ok(false));
    made += 2;
    assert!(map.read().get(5).is_none());
    assert_eq!(map.read().iter().count(), 99);
    drop(map);
    // SAFETY: as above.
    unsafe { barrier() };
    assert_eq!(drops.load(Ordering::Relaxed), made);
}
