//! Stook in Rust: objects of a type, allocations that cannot fail, a group, ranges.

use stook::{Cache, Error, Group, RangeMap};

#[global_allocator]
static HEAP: stook::Stook = stook::Stook;

struct Session {
    user: String,
}

/// All that can fail is done before the place where nothing may.
fn link(nodes: &Cache<[u64; 4]>) -> Result<u64, Error> {
    let ready = nodes.prefill(2)?;
    let [left, right] = ready.promises().ok_or(Error::NO_MEMORY)?;
    let (left, right) = (left.fill([1; 4]), right.fill([2; 4]));

    Ok(left[0] + right[0])
}

fn main() -> Result<(), Error> {
    let sessions = Cache::new("session")?;
    let one = sessions.alloc(Session { user: "ada".into() })?;
    println!("{}, one of {}", one.user, sessions.live()?);

    println!("{} is 1 and 2", link(&Cache::new("node")?)?);

    let requests = Group::new("requests", Some(64 << 20))?;
    let body = requests.enter(|| vec![0u8; 5000]);
    println!("a body of {} bytes is charged: {}", body.len(), requests.usage() >= 5000);

    let mut map = RangeMap::new()?;
    map.insert(0x1000..=0x1fff, "code")?;
    map.insert(0x4000..=0x7fff, "data")?;
    for (range, name) in &map {
        println!("{:#x} to {:#x}: {name}", range.start(), range.end());
    }
    Ok(())
}
