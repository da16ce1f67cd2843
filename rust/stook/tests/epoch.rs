//! Proves that what waits for readers of Stook's own RCU is dropped once, after them; that cells
//! and maps are whole beside writers; that a held range is hidden from readers, and its holder's.
#![cfg(feature = "maple")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use stook::{Error, RangeMap, Rcu, RcuCell, RcuRangeMap};

/// Says when it is dropped, and is made unreadable then.
struct Watched {
    pair: (u64, u64),
    drops: Arc<AtomicUsize>,
}

impl Watched {
    fn new(n: u64, drops: &Arc<AtomicUsize>) -> Self {
        Watched { pair: (n, n), drops: Arc::clone(drops) }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.pair = (1, 0);
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

fn count(drops: &Arc<AtomicUsize>) -> usize {
    Rcu::epoch().barrier().unwrap();
    drops.load(Ordering::Relaxed)
}

#[test]
fn a_cell_is_whole_beside_its_writer() {
    let drops = Arc::new(AtomicUsize::new(0));
    let cell = RcuCell::new(Rcu::epoch(), Watched::new(0, &drops)).unwrap();
    let end = AtomicBool::new(false);

    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                let now = cell.read();
                let inner = cell.read();
                assert_eq!(now.pair.0, now.pair.1);
                assert!(inner.pair.0 >= now.pair.0);
                if end.load(Ordering::Relaxed) {
                    break;
                }
            });
        }
        for n in 1..=3000 {
            cell.replace(Watched::new(n, &drops)).unwrap();
        }
        end.store(true, Ordering::Relaxed);
    });
    assert_eq!(count(&drops), 3000);
    assert_eq!(cell.read().pair, (3000, 3000));
    drop(cell);
    assert_eq!(count(&drops), 3001);
}

#[test]
fn a_value_outlives_the_reader_that_found_it() {
    let drops = Arc::new(AtomicUsize::new(0));
    let cell = RcuCell::new(Rcu::epoch(), Watched::new(7, &drops)).unwrap();
    let reader = cell.read();

    cell.replace(Watched::new(8, &drops)).unwrap();
    assert_eq!(Rcu::epoch().barrier(), Err(Error::DEADLOCK));
    assert_eq!((reader.pair, drops.load(Ordering::Relaxed)), ((7, 7), 0));
    drop(reader);
    assert_eq!(count(&drops), 1);
}

#[test]
fn a_map_that_was_loaded_has_readers() {
    let drops = Arc::new(AtomicUsize::new(0));
    let entries: Vec<_> =
        (0..2000).map(|n| (n * 10..=n * 10 + 4, Watched::new(n, &drops))).collect();
    let map = RcuRangeMap::from_sorted(Rcu::epoch(), entries).unwrap();
    let end = AtomicBool::new(false);

    thread::scope(|scope| {
        scope.spawn(|| loop {
            let reader = map.read();
            let found = reader.between(0..=999).inspect(|(_, value)| {
                assert_eq!(value.pair.0, value.pair.1);
            });
            assert_eq!(found.count(), 100);
            if end.load(Ordering::Relaxed) {
                break;
            }
        });
        for n in 0..1000 {
            assert_eq!(map.replace(n % 100 * 10, Watched::new(n, &drops)), Ok(true));
        }
        end.store(true, Ordering::Relaxed);
    });
    assert_eq!(count(&drops), 1000);
    {
        let reader = map.read();
        let (range, value) = reader.get_range(1234 * 10 + 3).unwrap();
        assert_eq!((range, value.pair.0), (12340..=12344, 1234));
        assert!(reader.get_range(9).is_none());
        assert!(reader.overlaps(5..=10) && !reader.overlaps(5..=9));
    }
    drop(map);
    assert_eq!(count(&drops), 3000);
}

#[test]
fn what_is_not_in_order_is_refused() {
    let drops = Arc::new(AtomicUsize::new(0));
    let watched = |n| Watched::new(n, &drops);
    let overlapping = vec![(1..=5, watched(1)), (5..=6, watched(2)), (7..=9, watched(3))];

    assert_eq!(RcuRangeMap::from_sorted(Rcu::epoch(), overlapping).err(), Some(Error::INVALID));
    assert_eq!(drops.load(Ordering::Relaxed), 3);

    let mut map = RangeMap::new().unwrap();
    map.insert(u64::MAX..=u64::MAX, watched(4)).unwrap();
    assert_eq!(map.load_sorted(vec![(0..=0, watched(5))]), Err(Error::INVALID));
    drop(map.remove(u64::MAX));
    map.load_sorted(vec![(0..=0, watched(6)), (1..=u64::MAX, watched(7))]).unwrap();
    assert_eq!(map.iter().map(|(_, value)| value.pair.0).sum::<u64>(), 13);
    drop(map);
    assert_eq!(drops.load(Ordering::Relaxed), 7);
}

#[test]
fn a_held_range_is_its_holders() {
    let drops = Arc::new(AtomicUsize::new(0));
    let map = RcuRangeMap::new(Rcu::epoch()).unwrap();
    let watched = |n| Watched::new(n, &drops);

    map.insert(0..=9, watched(1)).unwrap();
    let held = map.hold(10..=19).unwrap();
    assert_eq!(held.range(), 10..=19);
    assert_eq!(map.hold(5..=12).unwrap_err(), Error::EXISTS);
    assert_eq!(map.insert(19..=20, watched(2)), Err(Error::EXISTS));
    assert_eq!(map.replace(15, watched(3)), Ok(false));
    assert_eq!(map.remove(15), Ok(false));
    assert!(map.read().get(15).is_none() && map.read().overlaps(15..=15));
    assert_eq!(map.read().iter().count(), 1);
    held.fill(watched(4)).unwrap();
    assert_eq!(map.read().get(19).unwrap().pair, (4, 4));

    drop(map.hold(20..=29).unwrap());
    assert!(!map.read().overlaps(20..=29));
    std::mem::forget(map.hold(30..=39).unwrap());
    assert_eq!(map.insert(30..=30, watched(5)), Err(Error::EXISTS));
    assert_eq!(map.remove(10), Ok(true));
    assert_eq!(count(&drops), 4);
    drop(map);
    assert_eq!(count(&drops), 5);
}

#[test]
fn gaps_are_found_from_both_ends() {
    let mut map = RangeMap::with_gaps().unwrap();

    map.insert(10..=19, 1).unwrap();
    map.insert(30..=39, 2).unwrap();
    assert_eq!(map.find_gap(5, 10..=99), Ok(20));
    assert_eq!(map.find_gap_top(5, 0..=35), Ok(25));
    assert_eq!(map.find_gap(11, 10..=39), Err(Error::BUSY));
    assert_eq!(map.find_gap(0, 0..=9), Err(Error::INVALID));
    assert_eq!(RangeMap::<u8>::new().unwrap().find_gap(1, 0..=9), Err(Error::INVALID));
    assert_eq!(map.alloc_top(10, 0..=39, 3), Ok(20));
    assert_eq!(map.get_range(25), Some((20..=29, &3)));
    assert!(map.overlaps(0..=10) && !map.overlaps(0..=9));

    let mut next = u64::MAX;
    assert_eq!(map.alloc_cyclic(&mut next, 38..=u64::MAX, 4), Ok((u64::MAX, false)));
    assert_eq!(map.alloc_cyclic(&mut next, 38..=u64::MAX, 5), Ok((40, true)));
    assert_eq!(next, 41);
    assert_eq!(map.alloc_cyclic(&mut next, 10..=40, 6), Err(Error::BUSY));
}
