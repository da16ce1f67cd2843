//! Proves that caches, sheaves and groups keep what their types promise: objects end with their
//! guards, in any thread and after panics; a promise holds where there is no memory; a cache or a
//! group that is refused says why.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use stook::{flags, Cache, Error, Group, Object, Settings, Sheaf};

#[global_allocator]
static HEAP: stook::Stook = stook::Stook;

/// Counts the drops of a test.
struct Counted<'d>(&'d AtomicUsize, String);

impl<'d> Counted<'d> {
    fn new(drops: &'d AtomicUsize) -> Self {
        Counted(drops, "a string with memory of its own".repeat(3))
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn assert_send<T: Send>() {}
fn assert_sync<T: Sync>() {}

#[test]
fn guards_are_send_and_sync_as_their_values() {
    assert_send::<Cache<std::rc::Rc<u8>>>();
    assert_sync::<Cache<std::cell::Cell<u8>>>();
    assert_send::<Object<'static, std::cell::Cell<u8>>>();
    assert_sync::<Object<'static, String>>();
    assert_send::<Sheaf<'static, String>>();
    assert_send::<Group>();
    assert_sync::<Group>();
}

#[test]
fn lonely_objects_are_worth_moving() {
    let settings = Settings { flags: flags::NO_SHEAVES, ..Settings::default() };
    let cache = Cache::<[u8; 100]>::with("lonely", settings).unwrap();
    let mut objects: Vec<_> = (0..4000).map(|_| cache.alloc([1; 100]).unwrap()).collect();

    assert!(!Object::is_worth_moving(&objects[0]));
    objects.splice(1..2000, None);
    assert!(Object::is_worth_moving(&objects[0]));
    assert!(!Object::is_worth_moving(&objects[500]));
}

#[test]
fn the_global_allocator_is_stook() {
    let text = String::from("on the heap");
    let mut wide: Vec<Wide> = Vec::with_capacity(3);
    // SAFETY: the call takes any pointer.
    assert!(unsafe { stook::sys::stook_owns(text.as_ptr().cast()) });
    for n in 0..100 {
        wide.push(Wide([n; 64]));
        assert_eq!(wide.as_ptr() as usize % 64, 0);
    }
    assert!(wide.iter().enumerate().all(|(n, w)| w.0[63] == n as u8));
    assert!(vec![0u64; 5000].iter().all(|word| *word == 0));
}

#[repr(align(64))]
#[derive(Clone)]
struct Wide([u8; 64]);

#[test]
fn objects_end_with_their_guards() {
    let drops = AtomicUsize::new(0);
    let cache = Cache::new("counted").unwrap();
    let one = cache.alloc(Counted::new(&drops)).unwrap();
    let two = cache.alloc_with(|| Counted::new(&drops)).unwrap();

    assert_eq!(cache.live().unwrap(), 2);
    drop(one);
    assert_eq!((drops.load(Ordering::Relaxed), cache.live().unwrap()), (1, 1));
    let value = two.into_inner();
    assert_eq!((drops.load(Ordering::Relaxed), cache.live().unwrap()), (1, 0));
    assert!(value.1.starts_with("a string"));
    drop(value);
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}

#[test]
fn a_limit_is_kept() {
    let cache = Cache::with("few", Settings { limit_objects: 2, ..Settings::default() }).unwrap();
    let objects = [cache.alloc(1).unwrap(), cache.alloc(2).unwrap()];

    assert_eq!(cache.alloc(3).unwrap_err(), Error::NO_MEMORY);
    cache.set_limit(3).unwrap();
    assert_eq!(*cache.alloc(3).unwrap() + *objects[0], 4);
    cache.set_limit(0).unwrap();
    assert_eq!(Cache::<u8>::new("any").unwrap().set_limit(5).unwrap_err().errno(), 95);
}

#[test]
fn types_of_any_shape_have_caches() {
    let nothing = Cache::<()>::new("nothing").unwrap();
    let wide = Cache::<Wide>::new("wide").unwrap();
    let guards: Vec<_> = (0..50).map(|n| wide.alloc(Wide([n; 64])).unwrap()).collect();

    assert!(guards.iter().all(|guard| &**guard as *const Wide as usize % 64 == 0));
    assert!(nothing.alloc(()).is_ok());
    assert_eq!(Cache::<[u8; 200_000]>::new("huge").unwrap_err().errno(), 34);
    assert_eq!(Cache::<u8>::new("").unwrap_err(), Error::INVALID);
    assert_eq!(Cache::<u8>::new("a\0b").unwrap_err(), Error::INVALID);
    assert_eq!(Cache::<u8>::new(&"n".repeat(64)).unwrap_err(), Error::INVALID);
    assert_eq!(Error::NO_MEMORY.to_string(), "no memory, or a limit is met");
}

#[test]
fn a_panic_on_the_way_loses_nothing() {
    let cache = Cache::<String>::new("panics").unwrap();
    let made = catch_unwind(AssertUnwindSafe(|| {
        let _ = cache.alloc_with(|| std::panic::resume_unwind(Box::new("on purpose")));
    }));

    assert!(made.is_err());
    assert_eq!(cache.live().unwrap(), 0);
}

#[test]
fn objects_may_end_in_other_threads() {
    let cache = Cache::<(usize, Vec<usize>)>::new("message").unwrap();

    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for sender in 0..3 {
            let (send, cache) = (send.clone(), &cache);
            scope.spawn(move || {
                for n in 0..2000 {
                    send.send(cache.alloc((sender, vec![n; n % 20])).unwrap()).unwrap();
                }
            });
        }
        drop(send);
        let mut seen = 0;
        for message in receive {
            assert!(message.0 < 3 && message.1.iter().all(|n| n % 20 == message.1.len()));
            seen += 1;
        }
        assert_eq!(seen, 6000);
    });
    assert_eq!(cache.live().unwrap(), 0);
}

#[test]
fn promises_hold_without_memory() {
    let settings = Settings { flags: flags::ACCOUNT, ..Settings::default() };
    let cache = Cache::<[u64; 100]>::with("promised", settings).unwrap();
    let group = Group::new("empty", Some(0)).unwrap();
    let mut sheaf = cache.prefill(3).unwrap();
    let before = sheaf.available();

    assert_eq!(cache.alloc_in(&group, [0; 100]).unwrap_err(), Error::NO_MEMORY);
    assert!(before >= 3);
    let objects = {
        let [a, b, c] = sheaf.promises().unwrap();
        assert_eq!(sheaf.available(), before - 3);
        drop(c);
        assert_eq!(sheaf.available(), before - 2);
        group.enter(|| [a.fill([1; 100]), b.fill([2; 100])])
    };
    assert_eq!((objects[0][99], objects[1][0]), (1, 2));
    assert_eq!(sheaf.available(), before - 2);
    let mut others = Vec::new();
    while let Ok(object) = sheaf.alloc([3; 100]) {
        others.push(object);
    }
    assert_eq!(others.len(), before - 2);
    assert!(sheaf.promise().is_none() && sheaf.promises::<0>().is_some());
    sheaf.refill(5).unwrap();
    assert!(sheaf.available() >= 5);
    drop(sheaf);
    assert_eq!(objects[0][0] + others[0][0], 4);
    drop((objects, others));
    assert_eq!(cache.live().unwrap(), 0);
    assert_eq!(cache.prefill(70_000).unwrap_err(), Error::INVALID);
}

#[test]
fn groups_are_charged_while_inside() {
    let outer = Group::new("outer", None).unwrap();
    let inner = outer.below("inner", Some(1 << 20)).unwrap();
    let (one, two) = outer.enter(|| {
        let one = vec![1u8; 3000];
        let two = inner.enter(|| vec![2u8; 5000]);
        (one, two)
    });

    assert!(inner.usage() >= 5000 && outer.usage() >= 8000);
    let refused = inner.enter(|| Vec::<u8>::new().try_reserve(2 << 20).is_err());
    assert!(refused && inner.stats().unwrap().refusals > 0);
    let _ = catch_unwind(AssertUnwindSafe(|| {
        inner.enter(|| std::panic::resume_unwind(Box::new("out of the group")))
    }));
    let before = outer.usage();
    let outside = vec![3u8; 4000];
    assert_eq!(outer.usage(), before);
    drop((one, two, outside));
    assert_eq!(inner.usage(), 0);
}

#[test]
fn a_forgotten_object_keeps_its_memory() {
    let cache = Cache::<u64>::new("kept").unwrap();
    let object = cache.alloc(5).unwrap();
    let at = &*object as *const u64;

    std::mem::forget(object);
    drop(cache);
    // SAFETY: a cache in use is not destroyed, so the value is still there.
    assert_eq!(unsafe { *at }, 5);
}

#[test]
fn objects_come_and_go_in_bulk() {
    let drops = AtomicUsize::new(0);
    let cache = Cache::new("bulk").unwrap();
    let other = Cache::new("other bulk").unwrap();
    let few = Cache::with("few", Settings { limit_objects: 2, ..Settings::default() }).unwrap();
    let counted = || Counted::new(&drops);
    let mut objects: Vec<_> = (0..50)
        .flat_map(|_| cache.alloc_bulk([counted(), counted(), counted()]).unwrap())
        .collect();

    objects.insert(70, other.alloc(counted()).unwrap());
    assert_eq!((cache.live().unwrap(), other.live().unwrap()), (150, 1));
    assert!(objects.iter().all(|object| object.1.starts_with("a string")));
    Object::free_bulk(objects);
    assert_eq!((cache.live().unwrap(), other.live().unwrap()), (0, 0));
    assert_eq!(drops.load(Ordering::Relaxed), 151);
    assert!(few.alloc_bulk([counted(), counted(), counted()]).is_err());
    assert_eq!((few.live().unwrap(), drops.load(Ordering::Relaxed)), (0, 154));
    assert!(cache.alloc_bulk([]).unwrap().is_empty());
}

#[test]
fn a_panic_in_the_middle_of_a_bulk_free_loses_nothing() {
    struct Panics(bool);
    impl Drop for Panics {
        fn drop(&mut self) {
            if self.0 {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        }
    }
    let cache = Cache::new("panics in bulk").unwrap();
    let objects: Vec<_> = (0..9).map(|n| cache.alloc(Panics(n == 4)).unwrap()).collect();

    assert!(catch_unwind(AssertUnwindSafe(|| Object::free_bulk(objects))).is_err());
    assert_eq!(cache.live().unwrap(), 0);
}

#[test]
fn an_arena_shows_its_values_and_ends_them() {
    let drops = AtomicUsize::new(0);
    let mut arena = stook::Arena::new("arena").unwrap();
    let mut sum = 0;

    assert!(arena.is_empty().unwrap());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let all: Vec<_> =
                    (0..500).map(|_| arena.alloc(Counted::new(&drops)).unwrap()).collect();
                all.into_iter().for_each(|one| one.1.push('!'));
            });
        }
    });
    assert_eq!(arena.len().unwrap(), 1000);
    arena.for_each(|one| sum += one.1.ends_with('!') as usize).unwrap();
    arena.for_each(|one| one.1.clear()).unwrap();
    arena.for_each(|one| sum += one.1.len()).unwrap();
    assert_eq!((sum, drops.load(Ordering::Relaxed)), (1000, 0));
    drop(arena);
    assert_eq!(drops.load(Ordering::Relaxed), 1000);
}

#[test]
fn a_pool_makes_and_drops_each_value_once() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Kept(Vec<u8>);
    impl Drop for Kept {
        fn drop(&mut self) {
            assert!(self.0.capacity() >= 100);
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn make() -> Kept {
        MADE.fetch_add(1, Ordering::Relaxed);
        Kept(Vec::with_capacity(100))
    }
    // Without sheaves it does not matter which CPU a thread is on.
    let settings = Settings { flags: flags::NO_SHEAVES, ..Settings::default() };
    let pool = stook::Pool::with("kept", settings, make).unwrap();
    let at = {
        let mut one = pool.get().unwrap();
        one.0.push(7);
        &*one as *const Kept
    };
    let again: Vec<_> = (0..1000).map(|_| pool.get().unwrap()).collect();

    assert!(again.iter().any(|one| std::ptr::eq(&**one, at) && one.0 == [7]));
    assert_eq!((pool.live().unwrap(), DROPPED.load(Ordering::Relaxed)), (1000, 0));
    drop(again);
    pool.shrink().unwrap();
    drop(pool);
    assert_eq!(MADE.load(Ordering::Relaxed), DROPPED.load(Ordering::Relaxed));
    assert!(MADE.load(Ordering::Relaxed) >= 1000);
}

#[test]
fn a_watched_cache_says_that_objects_run_out() {
    #[derive(Default)]
    struct Seen {
        low: AtomicUsize,
        spare: std::sync::Mutex<Vec<Object<'static, u64>>>,
    }
    impl stook::Watch for Seen {
        fn low(&self, left: usize) {
            self.low.store(left, Ordering::Relaxed);
        }
        fn reclaim(&self, wanted: usize) -> usize {
            let mut spare = self.spare.try_lock().unwrap();
            let kept = spare.len().saturating_sub(wanted);
            let freed = spare.split_off(kept);
            let count = freed.len();
            drop(spare);
            Object::free_bulk(freed);
            count
        }
    }
    let seen: &'static Seen = Box::leak(Box::default());
    let settings = Settings { limit_objects: 5, ..Settings::default() };
    let cache = Cache::watched("watched", settings, 2, seen).unwrap();
    let cache: &'static Cache<u64> = Box::leak(Box::new(cache));

    for n in 0..3 {
        let object = cache.alloc(n).unwrap();
        seen.spare.lock().unwrap().push(object);
    }
    assert_eq!(seen.low.load(Ordering::Relaxed), 2);
    for n in 3..20 {
        let object = cache.alloc(n).unwrap();
        seen.spare.lock().unwrap().push(object);
    }
    assert_eq!(cache.live().unwrap(), 5);
    let spare = std::mem::take(&mut *seen.spare.lock().unwrap());
    spare.into_iter().for_each(std::mem::forget);
    assert_eq!(cache.alloc(20).unwrap_err(), Error::NO_MEMORY);
    assert_eq!(Cache::<u64>::watched("low", settings, 5, seen).unwrap_err(), Error::INVALID);
}

#[test]
fn what_backs_a_cache_sees_each_run_and_may_refuse() {
    use std::ptr::NonNull;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Runs {
        here: Mutex<Vec<usize>>,
        refuse: AtomicUsize,
    }
    impl stook::Backing for Runs {
        fn memory_in(&self, start: NonNull<u8>, bytes: usize) -> bool {
            assert_eq!((start.as_ptr() as usize % bytes, bytes), (0, 2 << 20));
            let used = self.refuse.load(Ordering::Relaxed) == 0;
            if used {
                self.here.lock().unwrap().push(start.as_ptr() as usize);
            }
            used
        }
        fn memory_out(&self, start: NonNull<u8>, _bytes: usize) {
            let mut here = self.here.lock().unwrap();
            let at = here.iter().position(|run| *run == start.as_ptr() as usize).unwrap();
            here.swap_remove(at);
        }
    }

    let runs: &'static Runs = Box::leak(Box::default());
    let cache = Cache::backed("backed", Settings::default(), runs).unwrap();
    runs.refuse.store(1, Ordering::Relaxed);
    assert_eq!(cache.alloc([1_u8; 1000]).unwrap_err(), Error::NO_MEMORY);
    assert!(runs.here.lock().unwrap().is_empty());
    runs.refuse.store(0, Ordering::Relaxed);
    let object = cache.alloc([1_u8; 1000]).unwrap();
    let run = object.as_ptr() as usize >> 21 << 21;
    assert_eq!(*runs.here.lock().unwrap(), [run]);
    drop(object);
    drop(cache);
    assert!(runs.here.lock().unwrap().is_empty());
}
