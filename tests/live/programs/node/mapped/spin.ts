// Two functions whose lines are not where a bundler puts them.
interface Turn { count: number; total: number }

export function spinning(turn: Turn): number {
    let total: number = turn.total;
    for (let i = 0; i < turn.count; i++) {
        total += Math.sqrt(i * total);
    }
    return total;
}
