import { spinning } from "./spin";

const unused: string[] = [];

function summing(count: number): number {
    let sum = 0;
    for (let i = 0; i < count; i++) {
        sum += i % 7;
    }
    return sum + unused.length;
}

function turning(end: number): void {
    let all = 0;
    while (Date.now() < end) {
        all += spinning({ count: 2000, total: all }) + summing(20000);
    }
    console.log(all > 0);
}

turning(Date.now() + 1000 * Number(process.argv[2]));
