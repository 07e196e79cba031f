// known.js SECONDS: calls in many ways, each function from known callers only (lab/nodestacks.py has the list): recursion by
// turns, three classes behind one call, closures, callbacks of the library, generators, an async chain, exceptions, getters,
// code of a string, JSON, regular expressions. At the end: "rounds N". Runs on 10 and later.
'use strict';

let sink = 0;

function spin(n) {
    let total = n;
    for (let i = 0; i < 300; i++) {
        total += i * total % 7;
    }
    return total;
}

function even(n) { return n === 0 ? spin(n) : odd(n - 1) + 1; }

function odd(n) { return n === 0 ? spin(n) : even(n - 1) + 1; }

function left(n) { return leftMiddle(n) + 1; }

function leftMiddle(n) { return leftLeaf(n) * 3; }

function leftLeaf(n) { return spin(n); }

function right(n) { return rightMiddle(n) + 1; }

function rightMiddle(n) { return rightLeaf(n) * 3; }

function rightLeaf(n) { return spin(n); }

class Add { apply(n) { return spin(n); } }

class Multiply { apply(n) { return spin(n + 1); } }

class Xor {
    apply(n) {
        return spin(n + 2);
    }
}

const OPS = [new Add(), new Multiply(), new Xor()];

function classes(n) {
    let total = 0;
    for (let i = 0; i < 6; i++) {
        total += OPS[(n + i) % 3].apply(n);
    }
    return total;
}

function closures(n) {
    const by = n % 5;
    const inner = function inner(m) { return spin(m + by); };
    let total = 0;
    for (let i = 0; i < 3; i++) {
        total += inner(i);
    }
    return total;
}

const NUMBERS = Array.from({length: 40}, (_, i) => i * 7 % 40);

function library(n) {
    const doubled = NUMBERS.map(function double(x) { return x * 2 + spin(1) % 3; });
    doubled.sort(function compare(a, b) { return a % (n % 7 + 2) - b % (n % 7 + 2) || a - b; });
    return doubled.reduce(function add(a, b) { return a + b; }, 0);
}

function* numbers(count) {
    for (let i = 0; i < count; i++) {
        yield spin(i);
    }
}

function generators(n) {
    let total = 0;
    for (const each of numbers(n % 7 + 3)) {
        total += each;
    }
    return total;
}

function deep(n) {
    if (n === 0) {
        spin(n);
        throw new RangeError("deep");
    }
    return deep(n - 1) + 1;
}

function throwing(n) {
    try {
        return deep(n % 13);
    } catch (error) {
        return error.message.length;
    }
}

const thing = {
    get size() { return spin(3); },
    toJSON() { return {value: spin(4) % 9, list: NUMBERS}; },
};

function getting(n) { return thing.size + n; }

const ofText = new Function("spin", "n", "return spin(n) + 1; // of a string");

function texts(n) { return ofText(spin, n); }

function json(n) { return JSON.parse(JSON.stringify({n, thing})).thing.value; }

const TEXT = "abcdefg".repeat(40) + "z";

function matching(n) {
    const found = /(?:[a-g]+)*z$/.test(TEXT) ? 1 : 0;
    return TEXT.replace(/e/g, function replaced(e) { return e + n % 10; }).length + found;
}

function round(n) {
    sink += left(n) + right(n) + even(n % 41) + classes(n) + closures(n) + library(n) + generators(n) + throwing(n) + getting(n) +
        texts(n) + json(n) + matching(n);
}

async function last(n) { return spin(n); }

async function chain(n) {
    const first = await last(n);
    spin(n);
    const second = await last(first % 5);
    return first + second;
}

async function main() {
    const end = Date.now() + Number(process.argv[2]) * 1000;
    let rounds = 0;
    while (Date.now() < end) {
        round(rounds++);
        if (rounds % 4 === 0) {
            sink += await chain(rounds);
        }
    }
    console.log("rounds", rounds);
}

main();
