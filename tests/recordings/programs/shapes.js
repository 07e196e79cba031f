// Generated code, the engine's built-ins calling back, and JSON in C++.
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function byText(a, b) { return String(a) < String(b) ? -1 : 1; }
const end = Date.now() + Number(process.argv[2] || 600);
let sum = 0;
while (Date.now() < end) {
  sum += fib(20);
  const numbers = Array.from({ length: 500 }, (_, i) => (i * 7919) % 500);
  numbers.sort(byText);
  sum += JSON.stringify(numbers).length;
}
process.exitCode = sum === 1 ? 1 : 0;
