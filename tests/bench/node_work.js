// node_work.js [COUNTS] [DEPTH]: pieces of equal work for ever, DEPTH functions deep (1), objects, closures and strings among them; how many
// are done stands in the file COUNTS (8 bytes, big endian), for tests/bench/node.py.
'use strict';

const fs = require("fs");
const file = process.argv[2] ? fs.openSync(process.argv[2], "w") : -1;
const bytes = Buffer.alloc(8);
let done = 0n;

function leaf(n) {
    let total = n;
    for (let i = 0; i < 2000; i++) {
        total += i * total % 7;
    }
    return total;
}

function piece(n) {
    const parts = [];
    for (let i = 0; i < 40; i++) {
        parts.push({name: `part ${i}`, apply: (x) => x + i});
    }
    return parts.reduce((sum, part) => part.apply(sum) + part.name.length, leaf(n));
}

function down(depth, n) {
    return depth > 1 ? down(depth - 1, n) + 1 : turns(n);
}

function turns(n) {
    let total = 0;
    for (let i = 0; i < 2000; i++) {
        total += piece(n + i) % 3;
        done++;
    }
    if (file >= 0) {
        bytes.writeBigUInt64BE(done);
        fs.writeSync(file, bytes, 0, 8, 0);
    }
    return total;
}

for (let n = 0; ; n++) {
    down(Number(process.argv[3] || 1), n % 10);
}
