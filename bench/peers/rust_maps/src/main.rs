//! bench/peers/rust_maps - Rust's ordered maps beside the maple tree, one of them in a process
//!
//! Purpose: what bench/micro/maple_map.cc measures, with map=btreemap (std's BTreeMap by first key)
//! or map=rangemap (the crate's RangeMap): the same ranges, the same random numbers, the same
//! answer. "beside" uses std's RwLock.
//! Place: built by bench/peers/build.py where there is cargo.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::RwLock;
use std::time::Instant;

use rangemap::RangeMap;

struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e3779b97f4a7c15).wrapping_add(1))
    }
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545f4914f6cdd1d)
    }
    fn below(&mut self, n: usize) -> usize {
        (((self.next() >> 32) * n as u64) >> 32) as usize
    }
}

/// The third word stands for the entry: what maple_map.cc's ranges take.
#[derive(Clone, Copy)]
struct Range {
    first: u64,
    last: u64,
    _entry: usize,
}

trait Map: Default + Send + Sync {
    fn store(&mut self, r: &Range, entry: usize);
    fn erase(&mut self, r: &Range);
    fn lookup(&self, key: u64) -> Option<usize>;
    /// The sum of all ends and entries, upwards or downwards.
    fn sum(&self, up: bool) -> u64;
}

fn add(sum: u64, last: u64, entry: usize) -> u64 {
    sum.wrapping_add(last).wrapping_add(entry as u64)
}

impl Map for BTreeMap<u64, (u64, usize)> {
    fn store(&mut self, r: &Range, entry: usize) {
        self.insert(r.first, (r.last, entry));
    }
    fn erase(&mut self, r: &Range) {
        self.remove(&r.first).expect("it was stored");
    }
    fn lookup(&self, key: u64) -> Option<usize> {
        let (_, &(last, entry)) = self.range(..=key).next_back()?;
        (key <= last).then_some(entry)
    }
    fn sum(&self, up: bool) -> u64 {
        if up {
            self.values().fold(0, |sum, &(last, entry)| add(sum, last, entry))
        } else {
            self.values().rev().fold(0, |sum, &(last, entry)| add(sum, last, entry))
        }
    }
}

impl Map for RangeMap<u64, usize> {
    fn store(&mut self, r: &Range, entry: usize) {
        self.insert(r.first..r.last + 1, entry);
    }
    fn erase(&mut self, r: &Range) {
        self.remove(r.first..r.last + 1);
    }
    fn lookup(&self, key: u64) -> Option<usize> {
        self.get(&key).copied()
    }
    fn sum(&self, up: bool) -> u64 {
        if up {
            self.iter().fold(0, |sum, (range, &entry)| add(sum, range.end, entry))
        } else {
            self.iter().rev().fold(0, |sum, (range, &entry)| add(sum, range.end, entry))
        }
    }
}

fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("/proc");
    let line = text.lines().find(|l| l.starts_with("Rss:")).expect("Rss");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).expect("a number")
        * 1024.0
}

fn option(key: &str, otherwise: &str) -> String {
    let start = format!("{key}=");
    std::env::args()
        .find_map(|a| a.strip_prefix(&start).map(str::to_string))
        .unwrap_or(otherwise.to_string())
}

fn number(key: &str, otherwise: usize) -> usize {
    option(key, &otherwise.to_string()).parse().expect("a number")
}

fn ns_each(start: Instant, n: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / n as f64
}

/// A step of a walk over the whole map, in ns. The first walk warms up.
fn walk_ns<M: Map>(map: &M, n: usize, up: bool) -> f64 {
    let wanted = std::hint::black_box(map.sum(!up));
    let rounds = if n < 1_000_000 { 1_000_000 / n } else { 1 };
    assert_eq!(map.sum(up), wanted);
    let start = Instant::now();
    for _ in 0..rounds {
        assert_eq!(std::hint::black_box(map).sum(up), wanted);
    }
    ns_each(start, rounds * n)
}

fn beside<M: Map>(map: M, ranges: &[Range], keys: u64) -> (f64, f64) {
    let (map, stop) = (RwLock::new(map), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut rng, mut writes) = (Rng::new(3), 0u64);
            while !stop.load(Ordering::Relaxed) {
                let i = rng.below(ranges.len());
                map.write().unwrap().erase(&ranges[i]);
                map.write().unwrap().store(&ranges[i], i);
                writes += 2;
            }
            writes
        });
        let (mut rng, mut reads, mut found) = (Rng::new(4), 0u64, 0usize);
        let start = Instant::now();
        while start.elapsed().as_millis() < 500 {
            for _ in 0..256 {
                found += map.read().unwrap().lookup(rng.next() % keys).is_some() as usize;
            }
            reads += 256;
        }
        stop.store(true, Ordering::Relaxed);
        std::hint::black_box(found);
        let us = start.elapsed().as_micros() as f64;
        (reads as f64 / us, writer.join().expect("the writer") as f64 / us)
    })
}

fn measure<M: Map>() {
    let n = number("n", 100_000);
    let lookups = number("lookups", if n < 1_000_000 { 2_000_000 } else { 4_000_000 });
    let gaps = number("gaps", 0) != 0;
    let (mut rng, mut key) = (Rng::new(1), 1u64);
    let mut ranges = Vec::with_capacity(n);
    for _ in 0..n {
        key += 1 + if gaps { rng.below(16) as u64 } else { 0 };
        let first = key;
        key += rng.below(16) as u64;
        ranges.push(Range { first, last: key, _entry: 0 });
    }
    let keys = key + 16;
    if number("order", 0) == 0 {
        for i in (2..=n).rev() {
            ranges.swap(i - 1, rng.below(i));
        }
    }
    let before = resident_bytes();
    let mut map = M::default();
    let mut start = Instant::now();
    for (i, r) in ranges.iter().enumerate() {
        map.store(r, i);
    }
    let store_ns = ns_each(start, n);
    let bytes = (resident_bytes() - before) / n as f64;
    start = Instant::now();
    for _ in 0..n / 3 {
        let i = rng.below(n);
        map.erase(&ranges[i]);
        map.store(&ranges[i], i);
    }
    let replace_ns = ns_each(start, n / 3 * 2);
    let mut found = 0;
    start = Instant::now();
    for _ in 0..lookups {
        let wanted = rng.next() % keys;
        if let Some(i) = map.lookup(wanted) {
            let r = &ranges[i];
            assert!(wanted >= r.first && wanted <= r.last);
            found += 1;
        }
    }
    let lookup_ns = ns_each(start, lookups.max(1));
    assert!(found >= lookups / 4);
    let (up_ns, down_ns) = (walk_ns(&map, n, true), walk_ns(&map, n, false));
    let (reads, writes) =
        if number("beside", 1) != 0 { beside(map, &ranges, keys) } else { (0.0, 0.0) };
    println!(
        "{{\"store_ns\": {store_ns}, \"bytes\": {bytes}, \"replace_ns\": {replace_ns}, \
         \"lookup_ns\": {lookup_ns}, \"up_ns\": {up_ns}, \"down_ns\": {down_ns}, \
         \"beside_per_us\": {reads}, \"beside_writes_per_us\": {writes}}}"
    );
}

fn main() {
    match option("map", "btreemap").as_str() {
        "btreemap" => measure::<BTreeMap<u64, (u64, usize)>>(),
        "rangemap" => measure::<RangeMap<u64, usize>>(),
        other => {
            eprintln!("no map {other}");
            std::process::exit(2);
        }
    }
}
