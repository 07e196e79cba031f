// endings.js HOW MS: works, and after MS milliseconds ends as HOW says: "natural", "exit" (status 3), "throw", "signal"
// (SIGTERM to itself), "own" (it has a handler for SIGUSR1, which says so), "loop" (it never lets go), "blocked" (its
// main thread waits in native code), "workers" (short ones, again and again), "cluster" (a primary with four workers, in which it works).
'use strict';

const [how, ms] = [process.argv[2], Number(process.argv[3])];

function work(until) {
    let total = 0;
    while (Date.now() < until) {
        total += Math.sqrt(total);
    }
    return total;
}

function works(end, then) {
    const turn = setInterval(() => {
        work(Date.now() + 5);
        if (Date.now() > end) {
            clearInterval(turn);
            then();
        }
    }, 6);
}

const ENDS = {
    natural() {},
    exit() { process.exit(3); },
    throw() { throw new Error("as it was asked"); },
    signal() { process.kill(process.pid, "SIGTERM"); },
    own() {},
};

function start() {
    const end = Date.now() + ms;
    if (how === "own") {
        process.on("SIGUSR1", () => console.log("own handler"));
    }
    if (how === "loop") {
        work(end);
    } else if (how === "blocked") {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    } else if (how === "workers") {
        const {Worker} = require("worker_threads");
        const next = () => Date.now() < end && new Worker(__filename, {argv: ["natural", 300]}).on("exit", next);
        next();
        works(end, () => {});
    } else {
        works(end, ENDS[how]);
    }
}

const cluster = require("cluster");
if (how === "cluster" && (cluster.isPrimary || cluster.isMaster)) {
    for (let i = 0; i < 4; i++) {
        cluster.fork();
    }
} else if (how === "cluster") {
    works(Date.now() + ms, () => process.exit(0));
} else {
    start();
}
