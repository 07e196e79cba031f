// lines.mjs SECONDS: an ECMAScript module whose functions work on one line each, in the main thread and in a worker; each line
// is named by its function: on6 works on line 6 in some loop. At the end: "done".
import {Worker, isMainThread, workerData} from 'node:worker_threads';
import {fileURLToPath} from 'node:url';

function on6(n) { let total = n; for (let i = 0; i < 3000; i++) { total += i * total % 7; } return total; }

function on9(n) {
    let total = n; for (let i = 0; i < 3000; i++) { total += i * total % 7; } // the line after the name's
    return total;
}

const on13 = (n) => { let total = n; for (let i = 0; i < 3000; i++) { total += i * total % 7; } return total; };

function work(end, total) {
    for (let i = 0; i < 50; i++) {
        total += on6(total % 10) + on9(total % 10) + on13(total % 10);
    }
    if (Date.now() < end) {
        setImmediate(work, end, total);
    } else if (isMainThread) {
        console.log("done");
    }
}

const seconds = isMainThread ? Number(process.argv[2]) : workerData;
if (isMainThread) {
    new Worker(fileURLToPath(import.meta.url), {workerData: seconds});
}
work(Date.now() + seconds * 1000, 0);
