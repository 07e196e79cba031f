// Generic code, a trait object, a closure and a collection: what Rust's symbols and frames look like.
use std::collections::BTreeMap;

trait Shape {
    fn area(&self, turns: u64) -> u64;
}

struct Square(u64);
struct Circle(u64);

impl Shape for Square {
    #[inline(never)]
    fn area(&self, turns: u64) -> u64 {
        (0..turns).fold(self.0, |sum, i| sum.wrapping_add(i * i ^ (sum >> 3)))
    }
}

impl Shape for Circle {
    #[inline(never)]
    fn area(&self, turns: u64) -> u64 {
        (0..turns).fold(self.0, |sum, i| sum.wrapping_mul(31).wrapping_add(i ^ (sum >> 5)))
    }
}

#[inline(never)]
fn total<T: Iterator<Item = u64>>(shapes: &[Box<dyn Shape>], turns: T) -> u64 {
    turns.map(|t| shapes.iter().map(|s| s.area(t)).fold(0u64, u64::wrapping_add)).fold(0, u64::wrapping_add)
}

#[inline(never)]
fn index(rounds: u64) -> usize {
    let mut map = BTreeMap::new();
    for i in 0..rounds {
        map.insert((i * 7919) % rounds, i.to_string());
    }
    map.values().map(|text| text.len()).sum()
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(250);
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(3)), Box::new(Circle(5))];
    let mut sum = 0u64;
    for round in 0..rounds {
        sum = sum.wrapping_add(total(&shapes, (0..400).map(|t| t * 4 + round)));
        sum = sum.wrapping_add(index(10000) as u64);
    }
    std::process::exit((sum == 1) as i32);
}
