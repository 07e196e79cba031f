// shares.js SECONDS WARM: CPU time, 30 % in loops(), 20 % in shapes() (one place that meets many classes), 15 % in steps()
// (a generator), 15 % in parsing() (JSON), 10 % in matching() (a regular expression), 10 % in hashing() (OpenSSL). Before
// them WARM seconds in warm(), while a profiler finds it. At the end the true shares, as CPU clocks around each call tell:
// "loops 0.3003 ...". Runs on 10 and later.
'use strict';

const crypto = require("crypto");

function now() {
    const used = process.cpuUsage();
    return (used.user + used.system) / 1e6;
}

function loops(n) {
    let total = 0;
    for (let i = 0; i < n * 500; i++) {
        total += i * total % 7;
    }
    return total;
}

const SHAPES = Array.from({length: 12}, (_, i) => ({[`a${i}`]: i, of: i % 3, [`b${i}`]: i, area(k) { return this.of * k; }}));

function shapes(n) {
    let total = 0;
    for (let i = 0; i < n * 20; i++) {
        const shape = SHAPES[i % 12];
        total += shape.area(i) + shape.of;
    }
    return total;
}

function* counting(n) {
    for (let i = 0; i < n * 20; i++) {
        yield i % 7;
    }
}

function steps(n) {
    let total = 0;
    for (const each of counting(n)) {
        total += each;
    }
    return total;
}

const THING = {a: 1, b: ["x", "y", {c: null}], d: "text with \"quotes\"", e: {f: 1.5, g: [true, false]}};

function parsing(n) {
    let total = 0;
    for (let i = 0; i < n; i++) {
        total += JSON.parse(JSON.stringify(THING)).b.length;
    }
    return total;
}

const TEXT = "abcdefg".repeat(100) + "zq";

function matching(n) {
    let total = 0;
    for (let i = 0; i < n / 4; i++) {
        total += /[a-g]*zq$/.test(TEXT) ? 1 : 0;
    }
    return total;
}

const BYTES = Buffer.alloc(4096, 7);

function hashing(n) {
    let total = 0;
    for (let i = 0; i < n; i++) {
        total += crypto.createHash("sha256").update(BYTES).digest()[0];
    }
    return total;
}

function warm(end) {
    while (now() < end) {
        Math.sqrt(2);
    }
}

const WANTED = {loops: [loops, 0.006], shapes: [shapes, 0.004], steps: [steps, 0.003], parsing: [parsing, 0.003],
                matching: [matching, 0.002], hashing: [hashing, 0.002]};
const spent = {}, turns = {};
warm(now() + Number(process.argv[3]));
const end = now() + Number(process.argv[2]);
while (now() < end) {
    for (const [name, [work, wanted]] of Object.entries(WANTED)) {
        turns[name] = turns[name] || 100;
        const start = now();
        work(turns[name]);
        const used = Math.max(now() - start, 1e-6);
        spent[name] = (spent[name] || 0) + used;
        // each turn brings the shares to what they should be
        turns[name] = Math.max(1, Math.min(2 * turns[name], Math.floor(turns[name] * wanted / used)));
    }
}
const sum = Object.values(spent).reduce((a, b) => a + b);
console.log(Object.entries(spent).map(([name, used]) => `${name} ${(used / sum).toFixed(4)}`).join(" "));
