//! rusty SECONDS: time in Rust functions: a method, a generic function and a closure.
use std::time::Instant;

/// What the optimiser cannot see through.
fn hidden<T: Copy>(value: T) -> T {
    unsafe { std::ptr::read_volatile(&value) }
}

struct Ledger {
    rows: Vec<u64>,
}

impl Ledger {
    #[inline(never)]
    fn balance(&self) -> u64 {
        let mut sum = 1u64;
        for _ in 0..500 {
            for row in &self.rows {
                sum = sum.wrapping_mul(6364136223846793005).wrapping_add(*row) ^ (sum >> 33);
            }
        }
        sum
    }
}

#[inline(never)]
fn repeated<F: Fn() -> u64>(times: u32, work: F) -> u64 {
    (0..times).fold(0, |sum, _| sum ^ work())
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let ledger = Ledger { rows: (0..100).collect() };
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds {
        hidden(repeated(10, || hidden(&ledger).balance()));
    }
}
