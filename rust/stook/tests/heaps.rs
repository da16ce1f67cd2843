//! Proves of heaps that values end with their boxes, memory with the heap, in any thread; that
//! alignments hold, and that a heap that is refused says why.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use stook::{Error, Group, Heap, HeapBox};

#[repr(align(256))]
#[derive(Clone, Copy)]
struct Wide(#[allow(dead_code)] u8);

struct Counted<'d>(&'d AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn assert_send<T: Send>() {}
fn assert_sync<T: Sync>() {}

#[test]
fn boxes_are_what_their_values_are() {
    assert_send::<Heap>();
    assert_sync::<Heap>();
    assert_send::<HeapBox<'static, std::cell::Cell<u8>>>();
    assert_sync::<HeapBox<'static, String>>();
}

#[test]
fn a_value_is_dropped_once() {
    let drops = AtomicUsize::new(0);
    let heap = Heap::new("drops", None).unwrap();
    let one = heap.boxed(Counted(&drops)).unwrap();
    let two = heap.boxed(Counted(&drops)).unwrap();
    drop(one);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    let two = two.into_inner();
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    assert_eq!(heap.stats().unwrap().objects_live, 0);
    drop(two);
    assert_eq!(drops.load(Ordering::Relaxed), 2);
    std::mem::forget(heap.boxed(Counted(&drops)).unwrap()); // its memory ends with the heap
    assert_eq!(heap.stats().unwrap().objects_live, 1);
}

#[test]
fn values_stay_until_the_reset() {
    let mut heap = Heap::new("stays", None).unwrap();
    for round in 0..3u32 {
        let numbers: Vec<&mut u32> = (0..1000).map(|i| heap.put(i + round).unwrap()).collect();
        assert!(numbers.iter().zip(round..).all(|(number, i)| **number == i));
        assert!(heap.owns(&*numbers[7]) && !heap.owns(&round));
        let wide = heap.put(Wide(1)).unwrap();
        assert_eq!(wide as *const Wide as usize % 256, 0);
        assert_eq!(heap.copy_str("").unwrap(), "");
        assert_eq!(heap.copy(&[7u16; 100_000]).unwrap()[99_999], 7);
        heap.reset().unwrap();
        assert_eq!(heap.stats().unwrap().bytes, 0);
    }
}

#[test]
fn threads_share_a_heap() {
    let heap = Heap::new("shared", None).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let kept = heap.boxed(String::from("kept")).unwrap();
                for i in 0..10_000 {
                    let word = heap.boxed(i).unwrap();
                    assert_eq!(*word, i);
                }
                let other = scope.spawn(move || kept.len());
                assert_eq!(other.join().unwrap(), 4);
            });
        }
    });
    heap.shrink().unwrap();
    assert_eq!(heap.stats().unwrap().bytes, 0);
}

#[test]
fn a_refusal_says_why() {
    assert_eq!(Heap::new("", None).unwrap_err(), Error::INVALID);
    assert_eq!(Heap::new(&"n".repeat(48), None).unwrap_err(), Error::INVALID);
    let heap = Heap::new("limited", Some(1 << 16)).unwrap();
    assert_eq!(heap.copy(&[0u8; 1 << 17]).unwrap_err(), Error::NO_MEMORY);
    heap.set_limit(None).unwrap();
    assert_eq!(heap.copy(&[0u8; 1 << 17]).unwrap().len(), 1 << 17);
    let group = Group::new("group", Some(1 << 20)).unwrap();
    let heap = Heap::charged_to(&group, "charged", None).unwrap();
    assert_eq!(heap.copy(&[0u8; 2 << 20]).unwrap_err(), Error::NO_MEMORY);
    heap.put(1).unwrap();
    assert!(group.usage() >= heap.stats().unwrap().bytes);
}
